import {Fault} from '@hearsay/core';
import test from 'ava';
import {openGateway} from '../../../test/support/open-gateway.ts';
import {scriptedAnswer, scriptedBody, scriptedCluster} from '../../../test/support/scripted-cluster.ts';

const form = (fields: Readonly<Record<string, string>>): string =>
  [
    ...Object.entries(fields).flatMap(([name, text]) => [
      '--x',
      `content-disposition: form-data; name="${name}"`,
      '',
      text,
    ]),
    '--x--',
    '',
  ].join('\r\n');
const headers = {'content-type': 'multipart/form-data; boundary=x'};

test('C66: a form for a recording crosses unchanged, with the boundary that it was sent with', async t => {
  const plain = {contentType: 'text/plain; charset=utf-8'};
  const cluster = scriptedCluster(() => scriptedAnswer(scriptedBody(['hello']), plain));
  await using gateway = await openGateway(cluster, {aliases: {'whisper-1': 'tiny'}});
  const body = form({model: 'whisper-1', response_format: 'srt'});
  const response = await fetch(`${gateway.url}/v1/audio/transcriptions`, {method: 'POST', body, headers});
  t.is(await response.text(), 'hello');
  t.is(response.headers.get('content-type'), 'text/plain; charset=utf-8');
  const [asked] = cluster.dispatched;
  t.like(asked?.request, {
    model: 'tiny',
    endpoint: '/v1/audio/transcriptions',
    needs: ['audio'],
    contentType: 'multipart/form-data; boundary=x',
  });
  t.is(Buffer.from(asked?.request.body ?? []).toString(), body);
});

const done = {type: 'transcript.text.done', text: 'hello'};
const events = [`data: ${JSON.stringify(done)}\n\n`, 'data: [DONE]\n\n'];
const delta = (text: string): string => `data: ${JSON.stringify({type: 'transcript.text.delta', delta: text})}\n\n`;
const [stream, json] = [{contentType: 'text/event-stream'}, {contentType: 'application/json'}];

test('C6: a transcript in one piece is streamed to the gateway, so that a client who leaves frees the slot', async t => {
  const cluster = scriptedCluster(() => scriptedAnswer(scriptedBody(events), stream));
  await using gateway = await openGateway(cluster);
  const body = form({model: 'tiny', stream: 'false'});
  const response = await fetch(`${gateway.url}/v1/audio/transcriptions`, {method: 'POST', body, headers});
  t.deepEqual(await response.json(), done);
  t.is(Buffer.from(cluster.dispatched[0]?.request.body ?? []).toString(), form({stream: 'true', model: 'tiny'}));
});

test('a transcript as a bare text is made of what llama-server knows, streamed or not', async t => {
  const body = form({model: 'tiny', response_format: 'text'});
  for (const answer of [
    scriptedAnswer(scriptedBody(events), stream),
    scriptedAnswer(scriptedBody(['{"text":"hello"}']), json),
  ]) {
    const cluster = scriptedCluster(() => answer);
    await using gateway = await openGateway(cluster);
    const response = await fetch(`${gateway.url}/v1/audio/transcriptions`, {method: 'POST', body, headers});
    t.is(await response.text(), 'hello');
    t.is(response.headers.get('content-type'), 'text/plain; charset=utf-8');
    const sent = Buffer.from(cluster.dispatched[0]?.request.body ?? []).toString();
    t.is(sent, form({response_format: 'json', stream: 'true', model: 'tiny'}));
  }
});

test('a transcript that breaks off is an error, and one in one piece from a server that does not stream is none', async t => {
  const cut = scriptedCluster(() =>
    scriptedAnswer(scriptedBody(['data: {"type":"transcript.text.delta"}\n\n']), stream),
  );
  await using cutting = await openGateway(cut);
  const ask = async (url: string, fields: Readonly<Record<string, string>>): Promise<Response> =>
    fetch(`${url}/v1/audio/transcriptions`, {method: 'POST', body: form({model: 'tiny', ...fields}), headers});
  t.is((await ask(cutting.url, {})).status, 502);
  t.regex(await (await ask(cutting.url, {stream: 'true'})).text(), /"code":"stream_truncated"/u);

  const plain = scriptedCluster(() => scriptedAnswer(scriptedBody(['{"text":"hello"}']), json));
  await using other = await openGateway(plain);
  for (const fields of [{}, {stream: 'true'}]) {
    t.deepEqual(await (await ask(other.url, fields)).json(), {text: 'hello'});
  }
});

const chunk = (content: string): string =>
  `data: ${JSON.stringify({object: 'transcription.chunk', choices: [{delta: {content}, finish_reason: null}]})}\n\n`;
const mark = 'data: [DONE]\n\n';

const ways: readonly (readonly [who: string, events: readonly string[]])[] = [
  ['pieces of a chat, as vLLM', [chunk('hel'), chunk('lo'), mark]],
  ['pieces and a mark, as llama-server would without its last event', [delta('hel'), delta('lo'), mark]],
  ['the whole and no mark, as OpenAI', [delta('hello'), events[0] ?? '']],
  ['bare texts, which nothing ends', ['data: {"text":"hel"}\n\n', 'data: {"text":"lo"}\n\n']],
];
for (const [who, told] of ways) {
  test(`a transcript that a server streams in ${who} does is a transcript, in one piece and streamed`, async t => {
    const cluster = scriptedCluster(() => scriptedAnswer(scriptedBody(told), stream));
    await using gateway = await openGateway(cluster);
    const ask = async (fields: Readonly<Record<string, string>>): Promise<Response> =>
      fetch(`${gateway.url}/v1/audio/transcriptions`, {
        method: 'POST',
        body: form({model: 'tiny', ...fields}),
        headers,
      });
    const whole = await ask({});
    t.is(whole.status, 200);
    t.like(await whole.json(), {text: 'hello'});
    t.is(await (await ask({response_format: 'text'})).text(), 'hello');
    t.is(await (await ask({stream: 'true'})).text(), told.join(''), 'byte for byte');
  });
}

test('a transcript in pieces of a chat that stops before its mark is an error, also where texts without a mark break', async t => {
  const broken = async function* (): AsyncGenerator<string> {
    yield 'data: {"text":"hel"}\n\n';
    throw new Fault('INTERRUPTED', 'spark broke off');
  };
  for (const [told, code] of [
    [() => [chunk('hel')], 'stream_truncated'],
    [() => [mark], 'stream_truncated'],
    [broken, 'interrupted'],
  ] as const) {
    const cluster = scriptedCluster(() => scriptedAnswer(scriptedBody(told()), stream));
    await using gateway = await openGateway(cluster);
    const url = `${gateway.url}/v1/audio/transcriptions`;
    const whole = await fetch(url, {method: 'POST', body: form({model: 'tiny'}), headers});
    t.not(whole.status, 200);
    t.like(await whole.json(), {error: {code}});
  }
});

test('llama-server is asked for JSON also where a client wants its transcript streamed as a text', async t => {
  const cluster = scriptedCluster(() => scriptedAnswer(scriptedBody(events), stream));
  await using gateway = await openGateway(cluster);
  const body = form({model: 'tiny', stream: 'true', response_format: 'text'});
  const response = await fetch(`${gateway.url}/v1/audio/transcriptions`, {method: 'POST', body, headers});
  t.is(await response.text(), events.join(''));
  const sent = Buffer.from(cluster.dispatched[0]?.request.body ?? []).toString();
  t.is(sent, form({response_format: 'json', model: 'tiny', stream: 'true'}));
});

test('a recording that is not sent as a form is refused', async t => {
  const cluster = scriptedCluster(() => scriptedAnswer(scriptedBody(['{}'])));
  await using gateway = await openGateway(cluster);
  const response = await fetch(`${gateway.url}/v1/audio/transcriptions`, {method: 'POST', body: '{}'});
  t.is(response.status, 400);
  t.is(cluster.dispatched.length, 0);
});

const incomplete: readonly (readonly [path: string, body: object, param: string])[] = [
  ['/v1/embeddings', {model: 'tiny'}, 'input'],
  ['/v1/embeddings', {model: 'tiny', input: []}, 'input'],
  ['/v1/rerank', {query: 'x'}, 'documents'],
  ['/embedding', {model: 'tiny'}, 'input'],
  ['/completion', {model: 'tiny'}, 'prompt'],
  ['/infill', {input_prefix: ''}, 'input_suffix'],
  ['/v1/responses/input_tokens', {}, 'input'],
  ['/v1/responses', {model: 'tiny'}, 'input'],
];
for (const [path, body, param] of incomplete) {
  test(`${path} with ${JSON.stringify(body)} lacks ${param}: that is the mistake of the client, and nobody is woken for it`, async t => {
    const cluster = scriptedCluster(() => scriptedAnswer(scriptedBody(['{}'])));
    await using gateway = await openGateway(cluster);
    const response = await fetch(gateway.url + path, {method: 'POST', body: JSON.stringify(body)});
    t.is(response.status, 400);
    t.like(await response.json(), {error: {param, type: 'invalid_request_error'}});
    t.is(cluster.dispatched.length, 0);
  });
}
