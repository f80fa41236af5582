import {subscribe, unsubscribe} from 'node:diagnostics_channel';
import {ServerResponse} from 'node:http';
import {Socket} from 'node:net';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import OpenAI from 'openai';
import {Fault} from '@hearsay/core';
import {connectTo, eventually, openGateway, post} from '../../../test/support/open-gateway.ts';
import type {WireClient} from '../../../test/support/open-gateway.ts';
import {chatEvents, event, scriptedAnswer, scriptedBody} from '../../../test/support/scripted-cluster.ts';
import {scriptedCluster} from '../../../test/support/scripted-cluster.ts';
import type {Script} from '../../../test/support/scripted-cluster.ts';
import type {Gateway, GatewayConfig} from './start-gateway.ts';

const body = JSON.stringify({model: 'tiny', stream: true, messages: []});
const first = chatEvents(['Hel', 'lo']).slice(0, 3);

async function open(t: ExecutionContext, script: Script, config: Partial<GatewayConfig> = {}): Promise<Gateway> {
  const gateway = await openGateway(scriptedCluster(script), config);
  t.teardown(() => gateway[Symbol.asyncDispose]());
  return gateway;
}

async function ask(gateway: Gateway): Promise<WireClient> {
  const client = await connectTo(gateway.url);
  client.socket.write(post('/v1/chat/completions', body, ['Connection: close']));
  return client;
}

/** The body of a chunked answer, as far as it has come. */
function unchunked(text: string): string {
  let rest = Buffer.from(text.slice(text.indexOf('\r\n\r\n') + 4));
  const pieces: Buffer[] = [];
  for (let size = sizeOf(rest); size > 0; size = sizeOf(rest)) {
    const from = rest.indexOf('\r\n') + 2;
    pieces.push(rest.subarray(from, from + size));
    rest = rest.subarray(from + size + 2);
  }
  return Buffer.concat(pieces).toString();
}

function sizeOf(chunk: Buffer): number {
  return Number.parseInt(chunk.subarray(0, 16).toString('latin1'), 16) || 0;
}

async function* breaking(pieces: readonly string[], code: 'INTERRUPTED' | 'ENGINE_FAILED'): AsyncGenerator<string> {
  yield* pieces;
  throw new Fault(code, 'spark broke off');
}

test('C1, R10: a stream has the headers that keep proxies from holding it back', async t => {
  const gateway = await open(t, () => scriptedAnswer(scriptedBody(chatEvents(['x']))));
  using client = await ask(gateway);
  const text = await client.until(/\r\n\r\n/u);
  t.regex(text, /content-type: text\/event-stream; charset=utf-8\r\n/iu);
  t.regex(text, /cache-control: no-cache\r\n/iu);
  t.regex(text, /x-accel-buffering: no\r\n/iu);
  t.notRegex(text, /content-length/iu);
});

test('C3, C12: bytes reach the client at once and unchanged, also when they come one by one', async t => {
  const events = chatEvents(['grün', '😀']).join('');
  const hold = Promise.withResolvers<void>();
  async function* single(): AsyncGenerator<string> {
    yield* Array.from(events.slice(0, 300));
    await hold.promise;
    yield* Array.from(events.slice(300));
  }
  const gateway = await open(t, () => scriptedAnswer(scriptedBody(single())));
  using client = await ask(gateway);
  await eventually(() => unchunked(client.text()).length === 300, 'what has been written has come');
  hold.resolve();
  t.is(unchunked(await client.until(/\r\n0\r\n\r\n$/u)), events);
});

test('C51: an interrupted stream ends with an error event and without [DONE]', async t => {
  const gateway = await open(t, () => scriptedAnswer(scriptedBody(breaking(first, 'INTERRUPTED'))));
  using client = await ask(gateway);
  const events = unchunked(await client.until(/\r\n0\r\n\r\n$/u)).split('\n\n');
  t.is(events.at(-1), '');
  t.like(JSON.parse(events.at(-2)?.slice(6) ?? ''), {
    error: {message: 'spark broke off', type: 'server_error', code: 'interrupted', param: null},
  });
  t.notRegex(client.text(), /\[DONE\]/u);
});

test('what breaks after [DONE] takes nothing from the client, streamed or not', async t => {
  const whole = chatEvents(['Hel', 'lo']);
  const gateway = await open(t, () => scriptedAnswer(scriptedBody(breaking(whole, 'INTERRUPTED'))));
  using client = await ask(gateway);
  t.is(unchunked(await client.until(/\r\n0\r\n\r\n$/u)), whole.join(''));
  const object = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({model: 'tiny', messages: []}),
  });
  t.is(object.status, 200);
});

test('C51: an error event stands alone although the stream broke in the middle of an event', async t => {
  const pieces = [...first, 'data: {"choices":[{"del'];
  const gateway = await open(t, () => scriptedAnswer(scriptedBody(breaking(pieces, 'INTERRUPTED'))));
  using client = await ask(gateway);
  t.regex(unchunked(await client.until(/\r\n0\r\n\r\n$/u)), /\[\{"del\n\ndata: \{"error":\{[^\n]*\}\}\n\n$/u);
});

for (const [what, code] of [
  ['breaks', 'interrupted'],
  ['ends without [DONE]', 'stream_truncated'],
] as const) {
  test(`C51: the openai SDK throws when a stream ${what}`, async t => {
    const gateway = await open(t, () =>
      scriptedAnswer(scriptedBody(what === 'breaks' ? breaking(first, 'INTERRUPTED') : first)),
    );
    const client = new OpenAI({baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0});
    const pieces: string[] = [];
    const read = async (): Promise<void> => {
      for await (const chunk of await client.chat.completions.create({model: 'tiny', messages: [], stream: true})) {
        pieces.push(chunk.choices[0]?.delta.content ?? '');
      }
    };
    const error = await t.throwsAsync(read(), {instanceOf: OpenAI.APIError});
    t.like(error, {code});
    t.deepEqual(pieces, ['', 'Hel', 'lo']);
  });
}

test("an error event of the engine's own is the only one", async t => {
  const failed = event({error: {code: 500, message: 'full', type: 'server_error'}});
  const gateway = await open(t, () => scriptedAnswer(scriptedBody([...first, failed])));
  using client = await ask(gateway);
  t.is(unchunked(await client.until(/\r\n0\r\n\r\n$/u)), first.join('') + failed);
});

test('a stream that breaks before its first byte has a status of its own', async t => {
  const gateway = await open(t, () => scriptedAnswer(scriptedBody(breaking([], 'ENGINE_FAILED'))));
  using client = await ask(gateway);
  t.regex(await client.until(/bad_gateway/u), /^HTTP\/1\.1 502/u);
});

test('R13: a client that waits long gets comments, which are no output, and then the answer', async t => {
  const given = Promise.withResolvers<void>();
  const events = chatEvents(['x']);
  const script: Script = async () => {
    await given.promise;
    return scriptedAnswer(scriptedBody(events));
  };
  const gateway = await open(t, script, {silenceMs: 30, keepAliveMs: 20});
  using client = await ask(gateway);
  await client.until(/: waiting\n\n[^]*: waiting\n\n[^]*: waiting\n\n/u);
  t.regex(client.text(), /^HTTP\/1\.1 200/u);
  given.resolve();
  const text = unchunked(await client.until(/\r\n0\r\n\r\n$/u));
  t.regex(text, /^(?:: waiting\n\n){3,}data: /u);
  t.is(text.replaceAll(': waiting\n\n', ''), events.join(''));
});

test('R13: nothing is added between the pieces of an answer', async t => {
  const hold = Promise.withResolvers<void>();
  async function* slow(): AsyncGenerator<string> {
    yield* first;
    await hold.promise;
    yield* chatEvents(['Hel', 'lo']).slice(3);
  }
  const gateway = await open(t, () => scriptedAnswer(scriptedBody(slow())), {silenceMs: 10, keepAliveMs: 10});
  using client = await ask(gateway);
  await client.until(/lo"/u);
  const start = performance.now();
  await eventually(() => performance.now() - start > 60, 'several pauses have passed');
  hold.resolve();
  t.is(unchunked(await client.until(/\r\n0\r\n\r\n$/u)), chatEvents(['Hel', 'lo']).join(''));
});

test('a failure within the silence has its own status, one after it is an event', async t => {
  const late = Promise.withResolvers<void>();
  let waits = false;
  const script: Script = async () => {
    if (waits) await late.promise;
    throw new Fault('OVERLOADED', 'all busy', {details: {retryAfterMs: 2500}});
  };
  const gateway = await open(t, script, {silenceMs: 100, keepAliveMs: 1000});
  using early = await ask(gateway);
  t.regex(await early.until(/rate_limit_exceeded/u), /^HTTP\/1\.1 429[^]*retry-after: 3\r\n/u);
  waits = true;
  using patient = await ask(gateway);
  await patient.until(/: waiting\n\n/u);
  late.resolve();
  const text = unchunked(await patient.until(/\r\n0\r\n\r\n$/u));
  t.regex(text, /^: waiting\n\ndata: \{"error":\{"message":"all busy"[^\n]*\}\}\n\n$/u);
});

test('a client that does not read stops the run from being read: the gateway holds less than 2 MB', async t => {
  const chunk = event({choices: [{index: 0, delta: {content: 'x'.repeat(10_000)}}]});
  function* endless(): Generator<string> {
    for (let count = 0; count < 10_000; count += 1) yield chunk;
    yield 'data: [DONE]\n\n';
  }
  const running = scriptedBody(endless());
  const gateway = await open(t, () => scriptedAnswer(running));
  const responses: ServerResponse[] = [];
  const spy = (message: unknown): void => {
    if (typeof message !== 'object' || !message || !('response' in message)) return;
    if (message.response instanceof ServerResponse) responses.push(message.response);
  };
  subscribe('http.server.request.start', spy);
  using client = await ask(gateway);
  client.socket.pause();
  // Counted in looks, since this process may be stopped for longer than the run takes.
  let [before, looks] = [-1, 0];
  await eventually(() => {
    looks = running.pulledBytes() === before ? looks + 1 : 0;
    before = running.pulledBytes();
    return before > 0 && looks >= 100;
  }, 'the run is not read any further');
  unsubscribe('http.server.request.start', spy);
  const held = responses.map(({writableLength, socket}) => writableLength + (socket?.writableLength ?? 0));
  t.true(Math.max(...held) > 0);
  t.true(Math.max(...held) < 2 * 1024 * 1024);
  t.true(before < 50_000_000, 'the rest is in the buffers of the system, or has not been read');
  client.socket.destroy();
  await eventually(() => running.isEnded(), 'the run has ended', 100);
});

test('a client that takes nothing for too long loses its answer, and others get its slot', async t => {
  const chunk = event({choices: [{index: 0, delta: {content: 'x'.repeat(10_000)}}]});
  const running = scriptedBody(Array.from({length: 10_000}, () => chunk));
  const cluster = scriptedCluster(() => scriptedAnswer(running));
  const gateway = await openGateway(cluster, {stalledMs: 200});
  t.teardown(() => gateway[Symbol.asyncDispose]());
  using client = await ask(gateway);
  client.socket.pause();
  await eventually(() => running.isEnded(), 'the run has ended', 20_000);
  t.like(cluster.dispatched[0]?.signal.reason, {code: 'CANCELLED'});
  t.true(running.pulledBytes() < 50_000_000, 'it was not read to its end');
});

test('a client that reads slowly gets every byte', async t => {
  const chunk = event({choices: [{index: 0, delta: {content: 'x'.repeat(10_000)}}]});
  const events = [...Array.from({length: 500}, () => chunk), 'data: [DONE]\n\n'];
  const gateway = await open(t, () => scriptedAnswer(scriptedBody(events)));
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {method: 'POST', body});
  let bytes = 0;
  for await (const piece of response.body ?? []) {
    bytes += piece.length;
    await new Promise(resolve => {
      setImmediate(resolve);
    });
  }
  t.is(bytes, events.join('').length);
});

test('what comes in one turn of the event loop leaves with one write, the end as well', async t => {
  const ticks = async (): Promise<void> =>
    new Promise(done => {
      process.nextTick(() => process.nextTick(done));
    });
  const turns = Promise.withResolvers<void>();
  async function* pieces(): AsyncGenerator<string> {
    yield event({choices: [{index: 0, delta: {content: 'a'}}]});
    await turns.promise;
    yield event({choices: [{index: 0, delta: {content: 'b'}}]});
    await ticks();
    yield event({choices: [{index: 0, delta: {content: 'c'}}]});
    await ticks();
    yield 'data: [DONE]\n\n';
    await ticks();
  }
  const gateway = await open(t, () => scriptedAnswer(scriptedBody(pieces())));
  const byPort = new Map<number | undefined, number[]>();
  const spy = (message: unknown): void => {
    if (typeof message !== 'object' || !message || !('socket' in message)) return;
    if (message.socket instanceof Socket) countWrites(message.socket);
  };
  function countWrites(socket: Socket): void {
    const writes: number[] = [];
    byPort.set(socket.remotePort, writes);
    const [one, many] = [socket._write.bind(socket), socket._writev?.bind(socket)];
    socket._write = (chunk, encoding, done) => {
      writes.push(1);
      one(chunk, encoding, done);
    };
    socket._writev = (chunks, done) => {
      writes.push(chunks.length);
      many?.(chunks, done);
    };
  }
  subscribe('http.server.request.start', spy);
  using client = await ask(gateway);
  await client.until(/"content":"a"/u);
  unsubscribe('http.server.request.start', spy);
  const writes = byPort.get(client.socket.localPort) ?? [];
  t.is(writes.length, 1, 'the first piece waits for nobody');
  turns.resolve();
  t.regex(await client.until(/\r\n0\r\n\r\n$/u), /"b"[^]*"c"[^]*DONE/u);
  t.is(writes.length, 2, writes.join());
});
