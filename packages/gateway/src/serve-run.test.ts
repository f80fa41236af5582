import {brotliCompressSync, deflateSync, gzipSync, zstdCompressSync} from 'node:zlib';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import OpenAI from 'openai';
import {bodyBytesMax, Fault} from '@hearsay/core';
import {connectTo, eventually, openGateway, post} from '../../../test/support/open-gateway.ts';
import {chatEvents, event, scriptedAnswer, scriptedBody} from '../../../test/support/scripted-cluster.ts';
import {scriptedCluster} from '../../../test/support/scripted-cluster.ts';
import type {Script, ScriptedCluster} from '../../../test/support/scripted-cluster.ts';
import type {Gateway} from './start-gateway.ts';

interface Opened {
  readonly cluster: ScriptedCluster;
  readonly gateway: Gateway;
  readonly client: OpenAI;
}

async function open(t: ExecutionContext, script: Script): Promise<Opened> {
  const cluster = scriptedCluster(script);
  const gateway = await openGateway(cluster);
  t.teardown(() => gateway[Symbol.asyncDispose]());
  const client = new OpenAI({baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0});
  return {cluster, gateway, client};
}

const hello: Script = () => scriptedAnswer(scriptedBody(chatEvents(['Hel', 'lo'])));
const never: Script = () => new Promise(() => {});
const messages = [{role: 'user' as const, content: 'hi'}];
const body = JSON.stringify({model: 'tiny', messages});

async function* stuck(): AsyncGenerator<string> {
  yield* chatEvents(['Hel', 'lo']).slice(0, 3);
  await new Promise(() => {});
}

test('the openai SDK gets one object, put together from the stream', async t => {
  const {client} = await open(t, hello);
  const {data, request_id: requestId} = await client.chat.completions.create({model: 'tiny', messages}).withResponse();
  t.like(data, {object: 'chat.completion', usage: {total_tokens: 5}, timings: {predicted_n: 2}});
  t.is(data.choices[0]?.message.content, 'Hello');
  t.is(data.choices[0]?.finish_reason, 'stop');
  t.regex(requestId ?? '', /^[0-9a-f]{24}$/u);
});

test('the openai SDK gets a stream piece by piece', async t => {
  const {client} = await open(t, hello);
  const pieces: string[] = [];
  for await (const chunk of await client.chat.completions.create({model: 'tiny', messages, stream: true})) {
    pieces.push(chunk.choices[0]?.delta.content ?? '');
  }
  t.deepEqual(pieces.filter(Boolean), ['Hel', 'lo']);
});

test('the openai SDK gets a text completion', async t => {
  const chunk = {id: 'c', object: 'text_completion', choices: [{index: 0, text: 'one', finish_reason: 'stop'}]};
  const {client, cluster} = await open(t, () => scriptedAnswer(scriptedBody([event(chunk), 'data: [DONE]\n\n'])));
  const answer = await client.completions.create({model: 'tiny', prompt: 'x'});
  t.like(answer, {object: 'text_completion', choices: [{text: 'one', finish_reason: 'stop'}]});
  t.like(cluster.dispatched[0]?.request, {endpoint: '/v1/completions', needs: ['completion']});
});

test('S81: the response says what ran, where and why, in header-safe text', async t => {
  const answer = scriptedAnswer(scriptedBody(chatEvents(['x'])));
  const run = {...answer.run, nodeName: 'Küche\r\nx: y', attempts: 2, reason: 'loaded there'};
  const {gateway} = await open(t, () => ({...answer, run}));
  const {headers} = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    body,
    headers: {'x-request-id': 'mine-1'},
  });
  t.is(headers.get('x-hearsay-node'), 'K%C3%BCche%0D%0Ax: y');
  t.is(headers.get('x-hearsay-model'), answer.run.digest);
  t.is(headers.get('x-hearsay-attempts'), '2');
  t.is(headers.get('x-hearsay-policy'), 'auto');
  t.is(headers.get('x-hearsay-reason'), 'loaded there');
  t.regex(headers.get('x-hearsay-request') ?? '', /^[0-9a-f]{24}$/u);
  t.is(headers.get('x-request-id'), 'mine-1');
});

test('the openai SDK sees an unknown model as NotFoundError with its code', async t => {
  const {client} = await open(t, () => {
    throw new Fault('MODEL_NOT_FOUND', 'no node knows "x"');
  });
  const error = await t.throwsAsync(client.chat.completions.create({model: 'x', messages, stream: true}), {
    instanceOf: OpenAI.NotFoundError,
  });
  t.like(error, {code: 'model_not_found', param: 'model', type: 'invalid_request_error'});
});

test('the openai SDK sees a bad body as BadRequestError and does not repeat it', async t => {
  const {gateway, cluster} = await open(t, hello);
  const client = new OpenAI({baseURL: `${gateway.url}/v1`, apiKey: 'none'});
  await t.throwsAsync(client.post('/chat/completions', {body: {model: 'tiny'}}), {instanceOf: OpenAI.BadRequestError});
  t.is(cluster.dispatched.length, 0);
});

test('R24: an error of the engine is the answer, streamed or not', async t => {
  const text = '{"error":{"code":400,"message":"too long","type":"exceed_context_size_error","n_ctx":2048}}';
  const {client} = await open(t, () =>
    scriptedAnswer(scriptedBody([text]), {status: 400, contentType: 'application/json; charset=utf-8'}),
  );
  for (const stream of [true, false]) {
    const error = await t.throwsAsync(client.chat.completions.create({model: 'tiny', messages, stream}), {
      instanceOf: OpenAI.BadRequestError,
    });
    t.like(error, {code: 'context_length_exceeded', error: {message: 'too long', n_ctx: 2048, param: null}});
  }
});

test('R21: a stream that begins with an error event is an HTTP error, streamed or not', async t => {
  const failed = {error: {code: 500, message: 'cannot', type: 'server_error'}};
  const {client} = await open(t, () => scriptedAnswer(scriptedBody([event(failed)])));
  for (const stream of [true, false]) {
    await t.throwsAsync(client.chat.completions.create({model: 'tiny', messages, stream}), {
      instanceOf: OpenAI.InternalServerError,
      message: /cannot/u,
    });
  }
});

test('an error event later in the stream fails a request for one object', async t => {
  const failed = {error: {code: 500, message: 'Context size has been exceeded.', type: 'server_error'}};
  const events = [...chatEvents(['Hel', 'lo']).slice(0, 3), event(failed)];
  const {client} = await open(t, () => scriptedAnswer(scriptedBody(events)));
  const error = await t.throwsAsync(client.chat.completions.create({model: 'tiny', messages}));
  t.like(error, {status: 500, type: 'server_error'});
});

test('C51: an answer without its end is no answer to a request for one object', async t => {
  const {client} = await open(t, () => scriptedAnswer(scriptedBody(chatEvents(['Hel', 'lo']).slice(0, -1))));
  const error = await t.throwsAsync(client.chat.completions.create({model: 'tiny', messages}));
  t.like(error, {status: 502, code: 'stream_truncated'});
});

test('an answer that is no event stream is a bad gateway', async t => {
  const {client} = await open(t, () => scriptedAnswer(scriptedBody(['<html>']), {contentType: 'text/html'}));
  const error = await t.throwsAsync(client.chat.completions.create({model: 'tiny', messages, stream: true}));
  t.like(error, {status: 502, code: 'bad_gateway'});
});

const encodings: Readonly<Record<string, (text: string) => Uint8Array<ArrayBuffer>>> = {
  gzip: text => gzipSync(text),
  br: text => brotliCompressSync(text),
  deflate: text => deflateSync(text),
  zstd: text => zstdCompressSync(text),
  identity: text => Buffer.from(text),
};
for (const [encoding, encode] of Object.entries(encodings)) {
  test(`C21: a body in ${encoding} is decoded`, async t => {
    const {gateway, cluster} = await open(t, hello);
    const headers = {'content-encoding': encoding};
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {method: 'POST', body: encode(body), headers});
    t.is(response.status, 200);
    t.is(cluster.dispatched[0]?.request.model, 'tiny');
  });
}

test('C21: an unknown encoding is a 415, a corrupt body a 400, a bomb a 413', async t => {
  const {gateway, cluster} = await open(t, hello);
  const send = async (encoding: string, bytes: Uint8Array<ArrayBuffer>): Promise<readonly [number, string]> => {
    const headers = {'content-encoding': encoding};
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {method: 'POST', body: bytes, headers});
    return [response.status, await response.text()];
  };
  for (const [encoding, bytes, status] of [
    ['compress', Buffer.from(body), 415],
    ['gzip', Buffer.from(body), 400],
    ['zstd', zstdCompressSync(body).subarray(0, -3), 400],
    ['gzip', gzipSync(Buffer.alloc(bodyBytesMax + 1)), 413],
  ] as const) {
    const [actual, text] = await send(encoding, bytes);
    t.is(actual, status, encoding);
    t.regex(text, /^\{"error":\{"message":/u);
  }
  t.is(cluster.dispatched.length, 0);
});

test('C24: three megabytes of image are fine, and too much is a 413 in the dialect', async t => {
  const {gateway, cluster} = await open(t, hello);
  const url = `data:image/png;base64,${'A'.repeat(3_000_000)}`;
  const image = JSON.stringify({messages: [{role: 'user', content: [{type: 'image_url', image_url: {url}}]}]});
  const send = (text: string): Promise<Response> =>
    fetch(`${gateway.url}/v1/chat/completions`, {method: 'POST', body: text});
  t.is((await send(image)).status, 200);
  t.deepEqual(cluster.dispatched[0]?.request.needs, ['chat', 'vision']);
  using client = await connectTo(gateway.url);
  client.socket.write(
    `POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${bodyBytesMax + 1}\r\n\r\n{`,
  );
  t.regex(await client.until(/request_too_large/u), /^HTTP\/1\.1 413/u);
});

test('C18, C22: a chunked body and one that waits for 100-continue arrive', async t => {
  const {gateway, cluster} = await open(t, hello);
  using chunked = await connectTo(gateway.url);
  chunked.socket.write('POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n');
  chunked.socket.write(
    `5\r\n${body.slice(0, 5)}\r\n${(body.length - 5).toString(16)}\r\n${body.slice(5)}\r\n0\r\n\r\n`,
  );
  t.regex(await chunked.until(/Hello/u), /^HTTP\/1\.1 200/u);
  using careful = await connectTo(gateway.url);
  const [head = '', rest = ''] = post('/v1/chat/completions', body, ['Expect: 100-continue']).split('\r\n\r\n');
  careful.socket.write(`${head}\r\n\r\n`);
  await careful.until(/^HTTP\/1\.1 100/u, 500);
  careful.socket.write(rest);
  await careful.until(/Hello/u);
  t.is(cluster.dispatched.length, 2);
});

test('C6, C7: a client that goes away ends its run within 100 ms, streamed or not', async t => {
  for (const stream of [true, false]) {
    const running = scriptedBody(stuck());
    const {gateway, cluster} = await open(t, () => scriptedAnswer(running));
    using client = await connectTo(gateway.url);
    client.socket.write(post('/v1/chat/completions', JSON.stringify({messages, stream})));
    await eventually(() => running.pulledBytes() > 300, 'three events were read');
    client.socket.destroy();
    await eventually(() => running.isEnded() && gateway.inFlight() === 0, 'the run has ended', 100);
    t.true(cluster.dispatched[0]?.signal.aborted);
  }
});

test('C9: a client that goes away while a node is sought ends that, streamed or not', async t => {
  const {gateway, cluster} = await open(t, never);
  for (const [index, stream] of [true, false].entries()) {
    using client = await connectTo(gateway.url);
    client.socket.write(post('/v1/chat/completions', JSON.stringify({messages, stream})));
    await eventually(() => cluster.dispatched.length === index + 1, 'dispatched');
    client.socket.end();
    await eventually(() => cluster.dispatched[index]?.signal.aborted === true, 'aborted', 100);
  }
  await eventually(() => gateway.inFlight() === 0, 'nothing is left');
  t.pass();
});

test('the openai SDK ends a run by leaving its loop', async t => {
  const running = scriptedBody(stuck());
  const {client} = await open(t, () => scriptedAnswer(running));
  for await (const chunk of await client.chat.completions.create({model: 'tiny', messages, stream: true})) {
    if (chunk.choices[0]?.delta.content === 'Hel') break;
  }
  await eventually(() => running.isEnded(), 'the run has ended', 1000);
  t.pass();
});

test('an answer that comes after its client has gone is ended', async t => {
  const late = scriptedBody(stuck());
  const given = Promise.withResolvers<void>();
  const {gateway, cluster} = await open(t, async () => {
    await given.promise;
    return scriptedAnswer(late);
  });
  using client = await connectTo(gateway.url);
  client.socket.write(post('/v1/chat/completions', body));
  await eventually(() => cluster.dispatched.length === 1, 'dispatched');
  client.socket.destroy();
  await eventually(() => gateway.inFlight() === 0, 'given up');
  given.resolve();
  await eventually(() => late.isEnded(), 'ended');
  t.is(late.pulledBytes(), 0);
});

test('C10: twenty clients that leave during their upload leave nothing behind', async t => {
  const {gateway, cluster} = await open(t, hello);
  for (let turn = 0; turn < 20; turn += 1) {
    using client = await connectTo(gateway.url);
    client.socket.write(post('/v1/chat/completions', body).slice(0, -4));
    await eventually(() => gateway.inFlight() === 1, 'upload begun');
    client.socket.destroy();
    await eventually(() => gateway.inFlight() === 0, 'upload forgotten', 1000);
  }
  t.is(cluster.dispatched.length, 0);
});
