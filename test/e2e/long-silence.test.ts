import {request} from 'node:http';
import {join} from 'node:path';
import {text} from 'node:stream/consumers';
import {pathToFileURL} from 'node:url';
import test from 'ava';
import {chatText} from '../support/chat.ts';
import {scriptedEngine} from '../support/scripted-engine.ts';
import type {Mishap} from '../support/scripted-engine.ts';
import {startTwoNodes} from '../support/two-nodes.ts';
import {timed} from '../support/until.ts';

/** Ten times what the shortened defaults allow. With 310000 and no shortened defaults it was run once by hand. */
const silenceMs = Number(process.env['HEARSAY_TEST_SILENCE_MS'] ?? 10_000);
const isShort = process.env['HEARSAY_TEST_SILENCE_MS'] === undefined;

test.serial('C45, C46: no default of Node ends a request that is silent for long, local and remote', async t => {
  t.timeout(silenceMs * 2 + 60_000);
  const {engine, variables} = scriptedEngine;
  const preload = pathToFileURL(join(import.meta.dirname, '../fixtures/short-defaults.mjs')).href;
  const {holder, entry} = await startTwoNodes(t, ['tiny-count-F16.gguf'], {
    engine,
    variables: {...variables, ...(isShort ? {NODE_OPTIONS: `--import ${preload}`} : {})},
  });
  const mishap: Mishap = {at: 'never', how: 'waits', ms: silenceMs};
  const messages = [{role: 'user', content: JSON.stringify(mishap)}];
  const ask = async (url: string, stream: boolean) => {
    if (stream) return (await chatText(url, {messages})).text;
    const {choices}: {choices: {message: {content: string}}[]} = JSON.parse(await post(url, {messages}));
    return choices[0]?.message.content;
  };
  const {value, ms} = await timed(async () =>
    Promise.all([holder, entry].flatMap(({url}) => [ask(url, false), ask(url, true)])),
  );
  t.deepEqual(
    value,
    Array.from({length: 4}, () => 'one two three '),
  );
  t.true(ms >= silenceMs);
});

/** Without the time limits of `fetch`. */
async function post(url: string, body: object): Promise<string> {
  const {promise, resolve, reject} = Promise.withResolvers<string>();
  const asking = request(`${url}/v1/chat/completions`, {method: 'POST'}, response => {
    text(response).then(resolve, reject);
  });
  asking.on('error', reject);
  asking.end(JSON.stringify(body));
  return promise;
}
