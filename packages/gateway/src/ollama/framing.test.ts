import test from 'ava';
import type {ExecutionContext} from 'ava';
import {Fault} from '@hearsay/core';
import {Ollama} from 'ollama';
import {connectTo, eventually, openGateway, post} from '../../../../test/support/open-gateway.ts';
import {chatEvents, event, scriptedAnswer, scriptedBody} from '../../../../test/support/scripted-cluster.ts';
import {modelReport, scriptedCluster} from '../../../../test/support/scripted-cluster.ts';
import type {Script} from '../../../../test/support/scripted-cluster.ts';
import type {GatewayConfig} from '../start-gateway.ts';

async function open(t: ExecutionContext, script: Script, changes: Partial<GatewayConfig> = {}) {
  const cluster = scriptedCluster(script, [modelReport({capabilities: ['chat', 'completion', 'tools', 'thinking']})]);
  const gateway = await openGateway(cluster, changes);
  t.teardown(() => gateway[Symbol.asyncDispose]());
  return {cluster, gateway, url: gateway.url, client: new Ollama({host: gateway.url})};
}

const messages = [{role: 'user', content: 'hi'}];
const body = JSON.stringify({model: 'tiny', messages});
const whole = JSON.stringify({model: 'tiny', messages, stream: false});

const ask = (url: string, text: string) => fetch(`${url}/api/chat`, {method: 'POST', body: text});

async function linesOf(response: Response): Promise<readonly Record<string, unknown>[]> {
  const text = await response.text();
  const lines = text.split('\n');
  if (lines.pop() !== '' || lines.includes('')) throw new Error(`not one object a line: ${JSON.stringify(text)}`);
  return lines.map(line => JSON.parse(line));
}

const joined = (lines: readonly Record<string, unknown>[]): string =>
  lines.map(({message}) => String(Reflect.get(Object(message), 'content') ?? '')).join('');

const delta = (value: unknown, reason: string | null = null): string =>
  event({choices: [{index: 0, delta: value, finish_reason: reason}]});

const answering =
  (chunks: AsyncIterable<string> | Iterable<string>): Script =>
  () =>
    scriptedAnswer(scriptedBody(chunks));

/** Bytes of a text in pieces of this size, so that characters are torn apart. */
function torn(text: string, size: number): Script {
  const bytes = Buffer.from(text);
  async function* pieces(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
  }
  return () => scriptedAnswer(pieces());
}

for (const size of [1, 2, 3, 7, 64, 100_000]) {
  test(`C12, C69: pieces of ${size} bytes make the same lines, also within a character`, async t => {
    const {url} = await open(t, torn(chatEvents(['Größe ', '🦙', ' 日本']).join(''), size));
    const response = await ask(url, body);
    t.is(response.headers.get('content-type'), 'application/x-ndjson');
    const lines = await linesOf(response);
    t.is(joined(lines), 'Größe 🦙 日本');
    t.like(lines.at(-1), {model: 'tiny', done: true, done_reason: 'stop', eval_count: 3});
    t.deepEqual(
      lines.filter(({done}) => done === true),
      lines.slice(-1),
    );
    t.is(joined([await (await ask(url, whole)).json()]), 'Größe 🦙 日本');
  });
}

test('C1, C3, C4: lines come one by one, and proxies are told to let them through', async t => {
  const gate = Promise.withResolvers<void>();
  async function* slow(): AsyncGenerator<string> {
    yield* chatEvents(['Hel']).slice(0, 2);
    await gate.promise;
    yield* chatEvents(['lo']).slice(2);
  }
  const {url} = await open(t, answering(slow()));
  const response = await ask(url, body);
  t.is(response.headers.get('x-accel-buffering'), 'no');
  const reader = response.body?.getReader();
  t.regex(new TextDecoder().decode((await reader?.read())?.value), /"content":"Hel"/u);
  gate.resolve();
  await reader?.cancel();
});

async function* breaking(chunks: readonly string[]): AsyncGenerator<string> {
  yield* chunks;
  throw new Fault('INTERRUPTED', 'spark broke off: the connection was closed');
}

const started = chatEvents(['Hel', 'lo']).slice(0, 3);

for (const [what, script, message, status] of [
  ['a node that dies', () => scriptedAnswer(scriptedBody(breaking(started))), /spark broke off/u, 502],
  ['a clean end without its mark', answering(started), /stopped before its end/u, 502],
  ['an end mark without a reason', answering([...started, 'data: [DONE]\n\n']), /stopped before its end/u, 502],
  ['an error event', answering([...started, event({error: {code: 500, message: 'oh no'}})]), /oh no/u, 500],
  ['an event that is no JSON', answering([...started, 'data: {"choices\n\n']), /not JSON/u, 502],
  [
    'arguments of a tool that are no object',
    answering([
      ...started,
      delta({tool_calls: [{index: 0, id: 'c', function: {name: 'rm', arguments: '{"path":'}}]}),
      delta({}, 'tool_calls'),
      'data: [DONE]\n\n',
    ]),
    /rm with arguments that are not a JSON object/u,
    502,
  ],
] as const) {
  test(`C51, C58: after output, ${what} ends the lines with an error and never as done`, async t => {
    const {url, client} = await open(t, script);
    const lines = await linesOf(await ask(url, body));
    t.is(joined(lines.slice(0, -1)), 'Hello');
    t.regex(String(lines.at(-1)?.['error']), message);
    t.true(lines.every(({done}) => done !== true));
    await t.throwsAsync(
      async () => {
        for await (const _ of await client.chat({model: 'tiny', messages, stream: true}));
      },
      {message},
    );
  });

  test(`a whole answer that meets ${what} is a ${status}`, async t => {
    const {client} = await open(t, script);
    t.like(await t.throwsAsync(client.chat({model: 'tiny', messages}), {message}), {status_code: status});
  });
}

test('R21: an error in the first event has its own status, streamed or not', async t => {
  const {url} = await open(t, answering([event({error: {code: 400, message: 'bad grammar'}})]));
  for (const text of [body, whole]) {
    const response = await ask(url, text);
    t.is(response.status, 400);
    t.deepEqual(await response.json(), {error: 'bad grammar'});
  }
});

test('R24: what llama-server refuses is told as it is, with its status', async t => {
  const refusal = JSON.stringify({error: {code: 422, message: 'no such grammar', type: 'x'}});
  const {client} = await open(t, () =>
    scriptedAnswer(scriptedBody([refusal]), {status: 422, contentType: 'application/json'}),
  );
  t.like(await t.throwsAsync(client.chat({model: 'tiny', messages}), {message: 'no such grammar'}), {status_code: 422});
});

test('R111: a full queue is 503 in the words that clients of Ollama look for, with retry-after', async t => {
  const {url} = await open(t, () => {
    throw new Fault('OVERLOADED', 'spark is busy', {details: {retryAfterMs: 2500}});
  });
  const response = await ask(url, body);
  t.is(response.status, 503);
  t.is(response.headers.get('retry-after'), '3');
  t.regex(await response.text(), /server busy, please try again\. {2}maximum pending requests exceeded/u);
});

test('R18: a tool call comes once, whole, with its arguments as an object', async t => {
  const call = (piece: object) => delta({tool_calls: [{index: 0, ...piece}]});
  const {url} = await open(
    t,
    answering([
      call({id: 'c1', type: 'function', function: {name: 'weather', arguments: ''}}),
      call({function: {arguments: '{"ci'}}),
      call({function: {arguments: 'ty":"Paris"}'}}),
      delta({}, 'tool_calls'),
      'data: [DONE]\n\n',
    ]),
  );
  const lines = await linesOf(await ask(url, body));
  t.is(lines.length, 2);
  t.like(lines[0], {
    done: false,
    message: {tool_calls: [{id: 'c1', function: {index: 0, name: 'weather', arguments: {city: 'Paris'}}}]},
  });
  t.like(lines[1], {done: true, done_reason: 'stop', message: {content: ''}});
});

for (const [megabytes, fits] of [
  [2, true],
  [9, false],
] as const) {
  test(`C13: a tool call of ${megabytes} MB ${fits ? 'is one line' : 'is an error that says so'}`, async t => {
    const text = JSON.stringify({file: 'x'.repeat(megabytes * 1024 * 1024)});
    const call = delta({tool_calls: [{index: 0, id: 'c', function: {name: 'write', arguments: text}}]});
    const {url} = await open(t, answering([call, delta({}, 'tool_calls'), 'data: [DONE]\n\n']));
    const response = await ask(url, body);
    t.is(response.status, fits ? 200 : 502);
    if (fits) t.true(JSON.stringify((await linesOf(response))[0]).length > 2_000_000);
    else t.regex(await response.text(), /^\{"error":"one line of the answer is longer than/u);
  });
}

test('R13: a waiting client gets empty pieces, and an error after them is still an error', async t => {
  const gate = Promise.withResolvers<void>();
  const {url, client} = await open(
    t,
    async () => {
      await gate.promise;
      throw new Fault('NO_CANDIDATE', 'nobody can');
    },
    {silenceMs: 20, keepAliveMs: 10},
  );
  const response = await ask(url, body);
  const reader = response.body?.getReader();
  const first: unknown = JSON.parse(new TextDecoder().decode((await reader?.read())?.value).split('\n')[0] ?? '');
  t.like(first, {model: 'tiny', message: {role: 'assistant', content: ''}, done: false});
  gate.resolve();
  await reader?.cancel();
  await t.throwsAsync(
    async () => {
      for await (const _ of await client.chat({model: 'tiny', messages, stream: true}));
    },
    {message: 'nobody can'},
  );
});

test('before the silence is over an error has its own status', async t => {
  const {url} = await open(t, () => {
    throw new Fault('NO_CANDIDATE', 'nobody can');
  });
  const response = await ask(url, body);
  t.is(response.status, 503);
  t.deepEqual(await response.json(), {error: 'nobody can'});
});

for (const [what, text] of [
  ['a stream', body],
  ['a whole answer', whole],
] as const) {
  for (const [when, script] of [
    ['waits for a node', () => new Promise<never>(() => {})],
    [
      'is answered',
      () =>
        scriptedAnswer(
          scriptedBody(
            (async function* stuck() {
              yield* started;
              await new Promise(() => {});
            })(),
          ),
        ),
    ],
  ] as const) {
    test(`C6, C10: a client that leaves ${what} while it ${when} ends the run, and nothing is counted any more`, async t => {
      const {cluster, gateway, url} = await open(t, script);
      const client = await connectTo(url);
      client.socket.write(post('/api/chat', text));
      await eventually(() => cluster.dispatched.length === 1, 'it was dispatched');
      client.socket.destroy();
      await t.notThrowsAsync(eventually(() => cluster.dispatched[0]?.signal.aborted === true, 'the run was ended'));
      await t.notThrowsAsync(eventually(() => gateway.inFlight() === 0, 'nothing is in flight'));
    });
  }
}
