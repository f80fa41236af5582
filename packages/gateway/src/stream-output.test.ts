import {once} from 'node:events';
import {createServer} from 'node:http';
import type {ServerResponse} from 'node:http';
import test from 'ava';
import {realEnvironment} from '../../../test/support/environment.ts';
import {connectTo, openGateway, post} from '../../../test/support/open-gateway.ts';
import {chatEvents, scriptedAnswer, scriptedBody, scriptedCluster} from '../../../test/support/scripted-cluster.ts';
import type {Script} from '../../../test/support/scripted-cluster.ts';
import {StreamOutput} from './stream-output.ts';

const messages = [{role: 'user', content: 'hi'}];
const idle = String.raw`\{"model":"tiny","created_at":"[^"]+"`;

/** What clients of each dialect take for a sign of life, and for no more than that. */
const signs: readonly (readonly [path: string, body: object, sign: string])[] = [
  ['/v1/chat/completions', {messages}, String.raw`: waiting\n\n`],
  ['/v1/completions', {prompt: 'hi'}, String.raw`: waiting\n\n`],
  ['/v1/responses', {input: 'hi'}, String.raw`: waiting\n\n`],
  ['/completion', {prompt: 'hi'}, String.raw`: waiting\n\n`],
  ['/v1/messages', {messages, max_tokens: 5}, String.raw`event: ping\ndata: \{"type":"ping"\}\n\n`],
  ['/api/chat', {messages}, String.raw`${idle},"message":\{"role":"assistant","content":""\},"done":false\}\n`],
  ['/api/generate', {prompt: 'hi'}, String.raw`${idle},"response":"","done":false\}\n`],
];
for (const [path, body, sign] of signs) {
  test(`R12, C15, C16, C48, C49: who waits at ${path} is shown life that its clients understand`, async t => {
    const given = Promise.withResolvers<void>();
    const script: Script = async () => {
      await given.promise;
      return scriptedAnswer(scriptedBody(chatEvents(['x'])));
    };
    await using gateway = await openGateway(scriptedCluster(script), {silenceMs: 20, keepAliveMs: 20});
    using client = await connectTo(gateway.url);
    client.socket.write(post(path, JSON.stringify({model: 'tiny', stream: true, ...body}), ['Connection: close']));
    // Between the signs are the lengths of the chunks.
    const head = await client.until(new RegExp(String.raw`(?:\r\n[0-9a-f]+\r\n${sign}){3}`, 'u'));
    t.regex(head, /^HTTP\/1\.1 200/u);
    t.regex(head, /x-accel-buffering: no/iu);
    t.notRegex(head, /content-encoding/iu);
    given.resolve();
    await client.until(/\r\n0\r\n\r\n$/u);
    t.notRegex(client.text(), /^id:/mu, 'some clients take a comment after an id for an event');
  });
}

test('C70: five hundred streams at once each get their own, and the node tells its health meanwhile', async t => {
  const given = Promise.withResolvers<void>();
  let count = 0;
  const script: Script = async () => {
    count += 1;
    const mine = `number ${count}`;
    await given.promise;
    return scriptedAnswer(scriptedBody(chatEvents([mine])));
  };
  const cluster = scriptedCluster(script);
  await using gateway = await openGateway(cluster);
  const body = JSON.stringify({model: 'tiny', stream: true, messages});
  const asked = Array.from({length: 500}, async () => {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {method: 'POST', body});
    return /"content":"number \d+"/u.exec(await response.text())?.[0];
  });
  while (cluster.dispatched.length < 500) t.is((await fetch(`${gateway.url}/health`)).status, 200);
  given.resolve();
  t.is(new Set(await Promise.all(asked)).size, 500);
  t.is(gateway.inFlight(), 0);
});

const form = ['--x', 'content-disposition: form-data; name="model"', '', 'whisper-1', '--x--', ''].join('\r\n');

const named: readonly (readonly [path: string, body: string, headers: Readonly<Record<string, string>>])[] = [
  ['/v1/chat/completions', JSON.stringify({model: 'whisper-1', messages}), {}],
  ['/v1/messages', JSON.stringify({model: 'whisper-1', messages}), {}],
  ['/v1/responses', JSON.stringify({model: 'whisper-1', input: 'x'}), {}],
  ['/v1/embeddings', JSON.stringify({model: 'whisper-1', input: 'x'}), {}],
  ['/api/chat', JSON.stringify({model: 'whisper-1', messages}), {}],
  ['/v1/audio/transcriptions', form, {'content-type': 'multipart/form-data; boundary=x'}],
];
for (const [path, body, headers] of named) {
  test(`C36, C37: an alias at ${path} is resolved before a node is sought`, async t => {
    const cluster = scriptedCluster(() => scriptedAnswer(scriptedBody(chatEvents(['x']))));
    await using gateway = await openGateway(cluster, {aliases: {'whisper-*': 'tiny'}});
    await (await fetch(gateway.url + path, {method: 'POST', body, headers})).text();
    t.is(cluster.dispatched[0]?.request.model, 'tiny');
  });
}

test('R6: a client that leaves in the second request of a connection ends that one', async t => {
  async function* stuck(): AsyncGenerator<string> {
    yield* chatEvents(['x']).slice(0, 2);
    await new Promise(() => {});
  }
  const cluster = scriptedCluster(() =>
    scriptedAnswer(scriptedBody(cluster.dispatched.length === 1 ? chatEvents(['x']) : stuck())),
  );
  await using gateway = await openGateway(cluster);
  using client = await connectTo(gateway.url);
  const request = post('/v1/chat/completions', JSON.stringify({model: 'tiny', stream: true, messages}));
  client.socket.write(request);
  await client.until(/\r\n0\r\n\r\n$/u);
  client.socket.write(request);
  await client.until(/\r\n0\r\n\r\nHTTP[^]*"content":"x"/u);
  client.socket.destroy();
  const [first, second] = cluster.dispatched;
  if (!second?.signal.aborted) await new Promise(resolve => second?.signal.addEventListener('abort', resolve));
  t.false(first?.signal.aborted);
});

test('what is written after the client has left is known to be lost at once', async t => {
  const arrived = Promise.withResolvers<ServerResponse>();
  const server = createServer((_request, response) => arrived.resolve(response)).listen(0, '127.0.0.1');
  t.teardown(() => server.close());
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  using client = await connectTo(`http://127.0.0.1:${port}`);
  client.socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  const response = await arrived.promise;
  const {clock} = realEnvironment();
  const style = {contentType: 'text/plain', keepAlive: () => ''};
  using output = new StreamOutput(response, clock, {silenceMs: 60_000, keepAliveMs: 60_000}, style);
  t.true(await output.write('x'));
  const left = once(response, 'close');
  client.socket.destroy();
  await left;
  t.false(await output.write('y'));
});
