import test from 'ava';
import type {ExecutionContext} from 'ava';
import {automatic, newRequestId, parsePolicy, toDigest} from '@hearsay/core';
import type {Busy, Environment, HostedService, Lease, Refusal, TextStore, WorkRequest} from '@hearsay/core';
import {realEnvironment} from '../../../test/support/environment.ts';
import {counting, sse, startHostedServer} from '../../../test/support/hosted-server.ts';
import type {HostedPlay, HostedServer} from '../../../test/support/hosted-server.ts';
import {until} from '../../../test/support/until.ts';
import type {HostedConfig} from './hosted-worker.ts';
import {startHosted} from './start-hosted.ts';

const never = new AbortController().signal;

interface Place {
  readonly server: HostedServer;
  readonly service: HostedService;
  readonly store: TextStore & {text: string | undefined};
}

interface PlaceOptions {
  readonly play?: HostedPlay;
  readonly changes?: Partial<HostedConfig>;
  readonly store?: Place['store'];
  readonly environment?: Environment;
}

async function place(t: ExecutionContext, options: PlaceOptions = {}): Promise<Place> {
  const server = await startHostedServer(t, options.play);
  const store = options.store ?? memoryStore();
  const config: HostedConfig = {
    name: 'acme',
    url: server.url,
    apiKey: 's3cret',
    models: {'qwen*': 'acme-small'},
    tokensPerMonth: 10_000,
    tokensPerRequest: 1000,
    limitField: 'max_tokens',
    waitMsMax: 30_000,
    ...options.changes,
  };
  const hosted = await startHosted([config], {...(options.environment ?? realEnvironment()), store});
  t.teardown(async () => hosted[Symbol.asyncDispose]());
  const [service] = hosted.services;
  if (!service) throw new Error('no service');
  return {server, service, store};
}

function memoryStore(): Place['store'] {
  const store = {
    text: undefined as string | undefined,
    read: async () => store.text,
    write: async (text: string) => void (store.text = text),
  };
  return store;
}

function requestTo({models}: HostedService, changes: Partial<WorkRequest> = {}): WorkRequest {
  return {
    request: newRequestId({next: () => 0, bytes: length => new Uint8Array(length)}),
    attempt: 1,
    hop: 0,
    digests: models.map(({digest}) => digest),
    endpoint: '/v1/chat/completions',
    needs: ['chat'],
    policy: parsePolicy('local-preferred'),
    deadlineMs: undefined,
    bodyBytes: 60,
    waitEstimateMs: 0,
    force: false,
    traceparent: undefined,
    ...changes,
  };
}

const chat = (changes: object = {}): Uint8Array =>
  Buffer.from(JSON.stringify({model: 'qwen3:8b', messages: [], stream: true, ...changes}));

async function offer(service: HostedService, changes: Partial<WorkRequest> = {}): Promise<Lease | Busy | Refusal> {
  return service.worker.offer(requestTo(service, changes), never);
}

async function accept(service: HostedService, changes: Partial<WorkRequest> = {}): Promise<Lease> {
  const answer = await offer(service, changes);
  if (answer.kind !== 'accepted') throw new Error(`${answer.kind}: ${JSON.stringify(answer)}`);
  return answer;
}

async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  return Buffer.concat(await Array.fromAsync(body)).toString();
}

const spentIn = ({store}: Place): unknown => Object.values(JSON.parse(store.text ?? '{"tokens":{}}').tokens)[0];

test('an answer comes as from any worker, from the model that the name is mapped to, with the key of the config', async t => {
  const {server, service} = await place(t);
  await using lease = await accept(service);
  t.deepEqual(
    [lease.digest],
    service.models.map(({digest}) => digest),
  );
  const response = await lease.run(chat({cache_prompt: true, top_k: 40}), never);
  t.like(response, {status: 200, contentType: 'text/event-stream'});
  const text = await textOf(response.body);
  t.regex(text, /" 1".*" 2".*" 3".*\[DONE\]\n\n$/su);
  t.is(response.record(), undefined);
  const [call] = server.calls;
  t.is(call?.path, '/v1/chat/completions');
  t.is(call?.headers.authorization, 'Bearer s3cret');
  t.is(call?.body['model'], 'acme-small');
  t.deepEqual(
    [call?.body['cache_prompt'], call?.body['top_k']],
    [undefined, undefined],
    'only llama-server knows them',
  );
});

test('the event with the usage is asked for, and reaches only a client that asked for it too', async t => {
  const {server, service} = await place(t);
  for (const [wants, changes] of [
    [false, {}],
    [true, {stream_options: {include_usage: true}}],
  ] as const) {
    await using lease = await accept(service);
    const text = await textOf((await lease.run(chat(changes), never)).body);
    t.is(/"completion_tokens"/u.test(text), wants);
    t.regex(text, /"finish_reason":"stop".*\[DONE\]\n\n$/su, 'and nothing else is missing');
  }
  t.true(server.calls.every(({body}) => JSON.stringify(body['stream_options']) === '{"include_usage":true}'));
});

test('law 7, S84: what is local-required is refused at the door, and no connection is made', async t => {
  const {server, service} = await place(t);
  t.like(await offer(service, {policy: automatic}), {kind: 'refused', code: 'policy'});
  t.like(await offer(service, {policy: parsePolicy('prefer=acme')}), {kind: 'refused', code: 'policy'});
  t.is(server.connections(), 0);
});

test('law 1: what has crossed the mesh, what is no model of it, and what is not its API are refused', async t => {
  const {service} = await place(t);
  t.like(await offer(service, {hop: 1}), {kind: 'refused', code: 'hop'});
  t.like(await offer(service, {digests: [toDigest(`sha256:${'a'.repeat(64)}`)]}), {kind: 'refused', code: 'digest'});
  t.like(await offer(service, {endpoint: '/v1/messages'}), {kind: 'refused', code: 'capability'});
});

test('a request that may cost more than one may is refused, and the answer of any other is limited', async t => {
  const {server, service} = await place(t);
  t.like(await offer(service, {bodyBytes: 3000}), {kind: 'refused', code: 'too-large'});
  const body = chat();
  for (const asked of [undefined, 5000, 7]) {
    await using lease = await accept(service, {bodyBytes: body.length});
    await textOf((await lease.run(asked === undefined ? body : chat({max_tokens: asked}), never)).body);
  }
  const [open, large, small] = server.calls.map(call => Number(call.body['max_tokens']));
  t.is(open, 1000 - Math.ceil(body.length / 3));
  t.true(large !== undefined && large > 900 && large < 1000);
  t.is(small, 7);
});

test('a month that has no tokens left refuses, says so, and stays so after a restart', async t => {
  const first = await place(t, {changes: {tokensPerMonth: 1005}});
  const lease = await accept(first.service);
  t.like(await offer(first.service), {kind: 'refused', code: 'policy'}, 'taken, though nothing has been sent yet');
  await textOf((await lease.run(chat(), never)).body);
  await lease[Symbol.asyncDispose]();
  await until('only what it has cost is spent', () => spentIn(first) === 8);

  const again = await place(t, {changes: {tokensPerMonth: 1005}, store: first.store});
  const refused = await offer(again.service);
  t.like(refused, {kind: 'refused', code: 'policy'});
  t.regex(refused.kind === 'refused' ? refused.message : '', /acme has cost 8 of 1005 tokens this month/u);
  t.is(again.server.connections(), 0);
});

test('a new month begins at zero', async t => {
  let wallMs = Date.UTC(2026, 10, 30);
  const environment = realEnvironment();
  const clock = {...environment.clock, wallMs: () => wallMs};
  const {service} = await place(t, {changes: {tokensPerMonth: 1000}, environment: {...environment, clock}});
  const lease = await accept(service);
  await textOf((await lease.run(chat(), never)).body);
  t.like(await offer(service), {kind: 'refused'});
  wallMs = Date.UTC(2026, 11, 1);
  t.like(await offer(service), {kind: 'accepted'});
});

test('a lease that is given back unused gives its tokens back; one that is left before its end does not', async t => {
  const hanging: HostedPlay = response => {
    response.writeHead(200, {'content-type': 'text/event-stream'});
    response.write(sse({choices: [{index: 0, delta: {content: ' 1'}}]}));
  };
  const {service, server} = await place(t, {play: hanging, changes: {tokensPerMonth: 1900}});
  const unused = await accept(service);
  await unused[Symbol.asyncDispose]();
  await unused[Symbol.asyncDispose]();
  const lease = await accept(service);
  const {body} = await lease.run(chat({max_tokens: 900}), never);
  for await (const chunk of body) {
    t.regex(Buffer.from(chunk).toString(), / 1/u);
    break;
  }
  await lease[Symbol.asyncDispose]();
  await until('the connection is closed', () => server.open() === 0);
  t.like(await offer(service), {kind: 'refused', code: 'policy'}, 'what it may have cost stays spent');
});

test('an abort and a disposed lease end the call at the service', async t => {
  const {service, server} = await place(t, {play: () => {}});
  const stop = new AbortController();
  const lease = await accept(service);
  const run = lease.run(chat(), stop.signal);
  await until('it is asked', () => server.calls.length === 1);
  stop.abort(new Error('the client went away'));
  await t.throwsAsync(run, {message: 'the client went away'});
  const other = await accept(service);
  const second = t.throwsAsync(other.run(chat(), never));
  await until('it is asked again', () => server.calls.length === 2);
  await other[Symbol.asyncDispose]();
  await second;
  await until('no connection is left', () => server.open() === 0);
});

test('an answer that is cut breaks, and is never a clean end', async t => {
  const cut: HostedPlay = (response, call) => {
    response.writeHead(200, {'content-type': 'text/event-stream', 'content-length': 1000});
    response.write(sse({choices: [{index: 0, delta: {content: ' 1'}}], call: call.path}));
    setTimeout(() => response.destroy(), 50);
  };
  const {service} = await place(t, {play: cut});
  await using lease = await accept(service);
  const {body} = await lease.run(chat(), never);
  await t.throwsAsync(textOf(body), {message: /acme \(hosted\) failed/u});
});

test('its own no about the request is passed on; one about the key is not the client’s and costs nothing', async t => {
  let status = 400;
  const refusing: HostedPlay = response => response.writeHead(status).end('{"error":{"message":"no"}}');
  const {service} = await place(t, {play: refusing, changes: {tokensPerMonth: 1000}});
  for (status of [400, 422, 429, 503]) {
    await using lease = await accept(service);
    t.is((await lease.run(chat(), never)).status, status);
  }
  for (status of [301, 401, 403, 404]) {
    await using lease = await accept(service);
    const error = await t.throwsAsync(lease.run(chat(), never), {message: /acme \(hosted\) failed: it answered \d+/u});
    t.notRegex(String(error?.stack), /s3cret/u);
  }
});

test('a service that is not there fails and says which', async t => {
  const {service} = await place(t, {changes: {url: 'http://127.0.0.1:9/v1'}});
  await using lease = await accept(service);
  await t.throwsAsync(lease.run(chat(), never), {code: 'ENGINE_FAILED', message: /acme \(hosted\) failed/u});
});

test('a damaged account of the month ends the start, because it must not lift the limit', async t => {
  const store = {...memoryStore(), read: async () => '{"month":'};
  await t.throwsAsync(startHosted([], {...realEnvironment(), store}), {code: 'BAD_FILE', message: /hosted\.json/u});
});

test('a base address with any path is used as it is', async t => {
  const server = await startHostedServer(t, counting);
  const url = server.url.replace('/v1', '/v1beta/openai/');
  const {service} = await place(t, {changes: {url}});
  await using lease = await accept(service);
  await textOf((await lease.run(chat(), never)).body);
  t.is(server.calls[0]?.path, '/v1beta/openai/chat/completions');
});
