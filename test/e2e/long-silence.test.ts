import {request} from 'node:http';
import {delimiter, dirname, join} from 'node:path';
import {text} from 'node:stream/consumers';
import {pathToFileURL} from 'node:url';
import test from 'ava';
import {chatText} from '../support/chat.ts';
import {startTwoNodes} from '../support/two-nodes.ts';
import {timed} from '../support/until.ts';

const fixture = (file: string): string => join(import.meta.dirname, '../fixtures', file);

/** Ten times what the shortened defaults allow. With 310000 and no shortened defaults it was run once by hand. */
const silenceMs = Number(process.env['HEARSAY_TEST_SILENCE_MS'] ?? 10_000);
const isShort = process.env['HEARSAY_TEST_SILENCE_MS'] === undefined;

test.serial('C45, C46: no default of Node ends a request that is silent for long, local and remote', async t => {
  t.timeout(silenceMs * 2 + 60_000);
  const variables = {
    HEARSAY_ENGINE_ARGS: `--silence-ms,${silenceMs}`,
    PATH: [dirname(process.execPath), process.env['PATH'] ?? ''].join(delimiter),
    ...(isShort ? {NODE_OPTIONS: `--import ${pathToFileURL(fixture('short-defaults.mjs')).href}`} : {}),
  };
  const engine = fixture('silent-engine.mjs');
  const {holder, entry} = await startTwoNodes(t, ['tiny-count-F16.gguf'], {engine, variables});
  const ask = async (url: string, stream: boolean) => {
    if (stream) return (await chatText(url, {})).text;
    const {choices}: {choices: {message: {content: string}}[]} = JSON.parse(await post(url));
    return choices[0]?.message.content;
  };
  const {value, ms} = await timed(async () =>
    Promise.all([holder, entry].flatMap(({url}) => [ask(url, false), ask(url, true)])),
  );
  t.deepEqual(
    value,
    Array.from({length: 4}, () => 'at last'),
  );
  t.true(ms >= silenceMs);
});

/** Without the time limits of `fetch`. */
async function post(url: string): Promise<string> {
  const {promise, resolve, reject} = Promise.withResolvers<string>();
  const asking = request(`${url}/v1/chat/completions`, {method: 'POST'}, response => {
    text(response).then(resolve, reject);
  });
  asking.on('error', reject);
  asking.end(JSON.stringify({messages: [{role: 'user', content: 'x'}]}));
  return promise;
}
