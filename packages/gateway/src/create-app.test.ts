import {readFileSync} from 'node:fs';
import {request as httpsRequest} from 'node:https';
import {join} from 'node:path';
import {text as textOf} from 'node:stream/consumers';
import test from 'ava';
import {connectTo, eventually, openGateway, post} from '../../../test/support/open-gateway.ts';
import {chatEvents, scriptedAnswer, scriptedBody} from '../../../test/support/scripted-cluster.ts';
import {scriptedCluster} from '../../../test/support/scripted-cluster.ts';
import type {ScriptedCluster} from '../../../test/support/scripted-cluster.ts';
import type {GatewayConfig} from './start-gateway.ts';

/** What HTTP can do to a gateway: bytes in, what must come out. */

const chat = JSON.stringify({model: 'tiny', messages: []});
const head = (line: string, ...headers: readonly string[]): string =>
  [`${line} HTTP/1.1`, 'Host: localhost', ...headers, '', ''].join('\r\n');
const get = (path: string, ...headers: readonly string[]): string => head(`GET ${path}`, ...headers);
const keys = ['right-key', 'other-key'];
const small = {bodyBytesMax: 100};

function answering(): ScriptedCluster {
  return scriptedCluster(() => scriptedAnswer(scriptedBody(chatEvents(['hello']))));
}

interface Case {
  readonly title: string;
  readonly send: string;
  readonly comes: RegExp;
  readonly config?: Partial<GatewayConfig>;
}

const served = /^HTTP\/1\.1 200[^]*hello/u;
const unauthorised = /^HTTP\/1\.1 401[^]*www-authenticate: Bearer[^]*"code":"invalid_api_key"/u;

const cases: readonly Case[] = [
  {title: 'C28: /v1 twice', send: post('/v1/v1/chat/completions', chat), comes: served},
  {title: 'C28: doubled and trailing slashes', send: post('//v1//chat/completions//?a=b', chat), comes: served},
  {title: 'an absolute URL', send: post('http://localhost:1/v1/chat/completions', chat), comes: served},
  {title: 'no content type', send: post('/v1/chat/completions', chat), comes: served},
  {
    title: 'C64: a content type that is none',
    send: post('/v1/chat/completions', chat, ['Content-Type: ;;;']),
    comes: served,
  },
  {
    title: 'a hundred headers',
    send: post(
      '/v1/chat/completions',
      chat,
      Array.from({length: 100}, (_, index) => `X-${index}: y`),
    ),
    comes: served,
  },
  {
    title: 'an expectation that nobody knows',
    send: post('/v1/chat/completions', chat, ['Expect: miracles']),
    comes: served,
  },
  {title: 'HEAD as GET, without a body', send: head('HEAD /v1/models'), comes: /^HTTP\/1\.1 200[^]*\r\n\r\n$/u},
  {title: 'HEAD / for a test of the connection', send: head('HEAD /'), comes: /^HTTP\/1\.1 200/u},
  {
    title: 'another method',
    send: head('DELETE /v1/chat/completions'),
    comes: /^HTTP\/1\.1 405[^]*allow: POST, OPTIONS[^]*"method_not_allowed"/u,
  },
  {title: 'a method that must have a content type', send: head('QUERY /v1/models'), comes: /^HTTP\/1\.1 405/u},
  {title: 'such a method at an unknown path', send: head('QUERY /nope'), comes: /^HTTP\/1\.1 404/u},
  {
    title: 'another method, in the words of Anthropic',
    send: head('GET /v1/messages'),
    comes: /^HTTP\/1\.1 405[^]*"type":"error","error":\{"type":"invalid_request_error"/u,
  },
  {
    title: 'an unknown path, for a client of Ollama',
    send: get('/api/nope'),
    comes: /^HTTP\/1\.1 404[^]*\{"error":"GET/u,
  },
  {title: 'a broken escape in the path', send: get('/v1/models/%zz'), comes: /^HTTP\/1\.1 400[^]*"bad_url"/u},
  {
    title: 'C24: a body that is announced as too large, in the words of Anthropic',
    send: head('POST /v1/messages', 'Content-Length: 101'),
    comes: /^HTTP\/1\.1 413[^]*"request_too_large"[^]*gateway\.body_limit_mb/u,
    config: small,
  },
  {
    title: 'C24: a body that turns out to be too large',
    send: `${head('POST /v1/completions', 'Transfer-Encoding: chunked')}65\r\n${'x'.repeat(0x65)}\r\n`,
    comes: /^HTTP\/1\.1 413[^]*"request_too_large"/u,
    config: small,
  },
  {
    title: 'C22: 100-continue for a body that is too large: it is refused before it is sent',
    send: head('POST /v1/completions', 'Content-Length: 101', 'Expect: 100-continue'),
    comes: /^HTTP\/1\.1 413/u,
    config: small,
  },
  {
    title: 'C33: a bearer token that is right',
    send: get('/v1/models', 'Authorization: bearer right-key'),
    comes: /^HTTP\/1\.1 200/u,
    config: {keys},
  },
  {
    title: 'a right x-api-key beside a placeholder',
    send: get('/v1/models', 'Authorization: Bearer none', 'X-Api-Key: other-key'),
    comes: /^HTTP\/1\.1 200/u,
    config: {keys},
  },
  {
    title: 'a right token beside a wrong x-api-key',
    send: get('/v1/models', 'X-Api-Key: none', 'Authorization: Bearer right-key'),
    comes: /^HTTP\/1\.1 200/u,
    config: {keys},
  },
  {title: 'no key', send: get('/v1/models'), comes: unauthorised, config: {keys}},
  {title: 'an empty key', send: get('/v1/models', 'X-Api-Key: '), comes: unauthorised, config: {keys}},
  {
    title: 'a wrong key',
    send: get('/hearsay/v1/status', 'Authorization: Bearer right-keyx'),
    comes: unauthorised,
    config: {keys},
  },
  {
    title: 'no key, for a health check',
    send: get('/health'),
    comes: /^HTTP\/1\.1 200[^]*\{"status":"ok"\}$/u,
    config: {keys},
  },
  {title: 'no key at a path that does not exist', send: get('/nope'), comes: unauthorised, config: {keys}},
  {
    title: 'no key, in the words of Anthropic',
    send: get('/v1/models', 'Anthropic-Version: 2023-06-01'),
    comes: /^HTTP\/1\.1 401[^]*"type":"error","error":\{"type":"authentication_error"/u,
    config: {keys},
  },
  {
    title: 'no key, for a client of Ollama',
    send: get('/api/tags'),
    comes: /^HTTP\/1\.1 401[^]*\{"error":"this node wants a key/u,
    config: {keys},
  },
  {
    title: 'C30: OPTIONS before any key',
    send: head('OPTIONS /v1/models', 'Origin: http://localhost:3000'),
    comes: /^HTTP\/1\.1 204[^]*access-control-allow-origin: http:\/\/localhost:3000/iu,
    config: {keys},
  },
  {
    title: 'C30: no key, and still the headers that let a page read why',
    send: get('/v1/models', 'Origin: http://localhost:3000'),
    comes: /^HTTP\/1\.1 401[^]*access-control-allow-origin: http:\/\/localhost:3000/iu,
    config: {keys},
  },
  {
    title: 'a page inside a desktop program',
    send: get('/v1/models', 'Origin: app://obsidian.md'),
    comes: /^HTTP\/1\.1 200[^]*access-control-allow-origin: app:\/\/obsidian\.md/iu,
  },
  {title: 'C31: a page of nowhere', send: get('/v1/models', 'Origin: null'), comes: /^HTTP\/1\.1 403/u},
];

for (const {title, send, comes, config = {}} of cases) {
  test(title, async t => {
    await using gateway = await openGateway(answering(), config);
    using client = await connectTo(gateway.url);
    client.socket.write(send);
    t.regex(await client.until(comes), /\r\nx-request-id: [0-9a-f]{24}\r\n/iu);
  });
}

test('nobody is woken for a request that is refused', async t => {
  for (const {send, comes, config = {}} of cases.filter(each => !each.comes.source.includes('200'))) {
    const cluster = answering();
    await using gateway = await openGateway(cluster, config);
    using client = await connectTo(gateway.url);
    client.socket.write(send);
    await client.until(comes);
    t.is(cluster.dispatched.length, 0);
  }
});

test('requests that are sent at once on one connection are answered in their order', async t => {
  await using gateway = await openGateway(answering());
  using client = await connectTo(gateway.url);
  const named = (id: string): string => post('/v1/chat/completions', chat, [`X-Request-Id: ${id}`]);
  client.socket.write(named('first') + get('/health') + named('third'));
  const text = await client.until(/third[^]*hello[^]*\}$/u);
  t.deepEqual(
    [...text.matchAll(/^x-request-id: (\S+)/gimu)].map(([, id]) => id?.slice(0, 5)).filter((_, index) => index !== 1),
    ['first', 'third'],
  );
  t.is([...text.matchAll(/HTTP\/1\.1 200/gu)].length, 3);
});

test('an upload that comes byte by byte arrives', async t => {
  await using gateway = await openGateway(answering());
  using client = await connectTo(gateway.url);
  for (const byte of post('/v1/chat/completions', chat)) {
    client.socket.write(byte);
    await new Promise(setImmediate);
  }
  t.regex(await client.until(/hello/u), /^HTTP\/1\.1 200/u);
});

test('a head that comes too slowly is given up, and others are served meanwhile', async t => {
  await using gateway = await openGateway(answering(), {headMsMax: 3000});
  using slow = await connectTo(gateway.url);
  slow.socket.write('GET / HTTP/1.1\r\nHost: local');
  t.is((await fetch(gateway.url)).status, 200);
  t.regex(await slow.until(/bad_http/u, 30_000), /^HTTP\/1\.1 408/u);
  await eventually(() => slow.socket.closed || slow.socket.readableEnded, 'the connection is closed');
});

test('with keys the gateway may listen for other machines, and without it says what to do', async t => {
  await using gateway = await openGateway(answering(), {host: '0.0.0.0', keys});
  t.is((await fetch(gateway.url)).status, 401);
  t.is((await fetch(gateway.url, {headers: {'x-api-key': 'right-key'}})).status, 200);
  await t.throwsAsync(openGateway(answering(), {host: '0.0.0.0', keys: ['']}), {
    code: 'BAD_CONFIG',
    message: /set gateway\.keys/u,
  });
});

test('with a certificate the gateway speaks HTTPS', async t => {
  const fixture = (file: string): string => join(import.meta.dirname, '../../../test/fixtures', file);
  const [certFile, keyFile] = [fixture('localhost-cert.pem'), fixture('localhost-key.pem')];
  await using gateway = await openGateway(answering(), {tls: {certFile, keyFile}});
  const {protocol, port} = new URL(gateway.url);
  t.is(protocol, 'https:');
  const url = `https://localhost:${port}/v1/chat/completions`;
  const answer = await new Promise<string>((resolve, reject) => {
    const asking = httpsRequest(
      url,
      {method: 'POST', ca: readFileSync(certFile), family: 4},
      response => void textOf(response).then(resolve, reject),
    );
    asking.on('error', reject).end(chat);
  });
  t.regex(answer, /hello/u);

  await t.throwsAsync(openGateway(answering(), {tls: {certFile, keyFile: fixture('none.pem')}}), {
    code: 'BAD_CONFIG',
    message: /gateway\.tls_key/u,
  });
  await t.throwsAsync(openGateway(answering(), {tls: {certFile: keyFile, keyFile}}), {code: 'BAD_CONFIG'});
});
