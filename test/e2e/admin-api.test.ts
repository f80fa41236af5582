import test from 'ava';
import {chatText} from '../support/chat.ts';
import {startDaemon} from '../support/daemon.ts';
import {startTwoNodes} from '../support/two-nodes.ts';

test.serial('whoever listens at one node sees an engine of another one come up, and the node go', async t => {
  const {holder, entry} = await startTwoNodes(t, ['tiny-count-F16.gguf']);
  const response = await fetch(`${entry.url}/hearsay/v1/events`, {signal: AbortSignal.timeout(120_000)});
  const seen = lines(response);
  await find(seen, /"change":"appeared".*"name":"tiny-count-F16"/u);
  await chatText(entry.url, {model: 'tiny-count-F16', max_tokens: 2});
  await find(seen, /"change":"(?:appeared|changed)".*"state":"ready"/u);
  await holder.stop();
  t.regex(await find(seen, new RegExp(`"change":"gone".*"name":"${holder.name}"`, 'u')), /^data: /u);
  await seen.return(undefined);
});

test.serial('the OpenAPI document tells of every path of the admin API, and of no other', async t => {
  const {url} = await startDaemon(t);
  const unknown = await (await fetch(`${url}/hearsay/v1/nope`)).text();
  const served = [...unknown.matchAll(/(GET|POST) (\/hearsay\/v1\/[^ ,"]+)/gu)].map(
    ([, method, path]) => `${method} ${path}`,
  );
  const document: {paths?: object} = Object(await (await fetch(`${url}/hearsay/v1/openapi.json`)).json());
  const told = Object.entries(document.paths ?? {}).flatMap(([path, methods]) =>
    Object.keys(methods).map(method => `${method.toUpperCase()} ${path}`),
  );
  t.deepEqual(told.toSorted(), served.filter(each => !each.endsWith('/nope')).toSorted());
});

async function* lines({body}: Response): AsyncGenerator<string, void, undefined> {
  let rest = '';
  for await (const text of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const parts = `${rest}${text}`.split('\n');
    rest = parts.pop() ?? '';
    yield* parts;
  }
}

async function find(seen: AsyncGenerator<string, void, undefined>, pattern: RegExp): Promise<string> {
  for (;;) {
    const {value, done} = await seen.next();
    if (done === true) throw new Error(`the stream ended before ${pattern}`);
    if (typeof value === 'string' && pattern.test(value)) return value;
  }
}
