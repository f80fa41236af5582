import test from 'ava';
import type {Endpoint} from '@hearsay/core';
import {openGateway} from '../../../test/support/open-gateway.ts';
import {scriptedAnswer, scriptedBody, scriptedCluster} from '../../../test/support/scripted-cluster.ts';
import {withoutFolders} from './read-native.ts';

const shared: readonly (readonly [path: string, body: object, endpoint: Endpoint])[] = [
  ['/completions', {prompt: 'x'}, '/completion'],
  ['/completions', {prompt: 'x', model: 'tiny'}, '/v1/completions'],
  ['/v1/completions', {prompt: 'x'}, '/v1/completions'],
  ['/embeddings', {input: 'x'}, '/embedding'],
  ['/embeddings', {input: 'x', model: 'tiny'}, '/v1/embeddings'],
];
for (const [path, body, endpoint] of shared) {
  test(`${path} with ${Object.keys(body).join(' and ')} means ${endpoint} of llama-server`, async t => {
    const cluster = scriptedCluster(() => scriptedAnswer(scriptedBody(['{}']), {status: 418}));
    await using gateway = await openGateway(cluster);
    await fetch(gateway.url + path, {method: 'POST', body: JSON.stringify(body)});
    t.is(cluster.dispatched[0]?.request.endpoint, endpoint);
  });
}

test('a native stream that ends before its last piece ends with an error', async t => {
  const cut = ['data: {"index":0,"content":"a","stop":false}\n\n'];
  const cluster = scriptedCluster(() => scriptedAnswer(scriptedBody(cut)));
  await using gateway = await openGateway(cluster);
  const ask = async (stream: boolean): Promise<Response> =>
    fetch(`${gateway.url}/completion`, {method: 'POST', body: JSON.stringify({prompt: 'x', stream})});
  t.regex(await (await ask(true)).text(), /"content":"a"[^]*data: \{"error":\{"message":"the answer stopped before/u);
  t.is((await ask(false)).status, 502);
});

test('a native request is streamed upstream whatever the client wants, and keeps its choice of fields here', async t => {
  const cluster = scriptedCluster(() => scriptedAnswer(scriptedBody(['data: {"content":"a","stop":true,"x":1}\n\n'])));
  await using gateway = await openGateway(cluster);
  const body = JSON.stringify({prompt: 'x', response_fields: ['content'], odd: [1]});
  const answer = await fetch(`${gateway.url}/completion`, {method: 'POST', body});
  t.deepEqual(await answer.json(), {content: 'a'});
  const sent: unknown = JSON.parse(Buffer.from(cluster.dispatched[0]?.request.body ?? []).toString());
  t.deepEqual(sent, {prompt: 'x', odd: [1], stream: true});
});

test('a model is looked at by the name in the query', async t => {
  const json = {contentType: 'application/json'};
  const cluster = scriptedCluster(() => scriptedAnswer(scriptedBody(['[{"id":0}]']), json));
  await using gateway = await openGateway(cluster, {aliases: {big: 'tiny'}});
  t.deepEqual(await (await fetch(`${gateway.url}/slots?model=big`)).json(), [{id: 0}]);
  t.like(cluster.dispatched[0]?.request, {model: 'tiny', endpoint: '/slots'});
});

test('what the owner has switched off is 501 as in llama-server, and 400 where SDKs would repeat it', async t => {
  const off = JSON.stringify({error: {code: 501, message: 'off', type: 'not_supported_error'}});
  const cluster = scriptedCluster(() => scriptedAnswer(scriptedBody([off]), {status: 501}));
  await using gateway = await openGateway(cluster);
  const slots = await fetch(`${gateway.url}/slots`);
  t.is(slots.status, 501);
  t.is(slots.headers.get('x-should-retry'), 'false');
  const body = JSON.stringify({input: 'x'});
  t.is((await fetch(`${gateway.url}/v1/embeddings`, {method: 'POST', body})).status, 400);
});

test('what llama-server says of itself does not say where the owner keeps files', t => {
  t.deepEqual(withoutFolders({model_path: '/home/me/models/a.gguf', n: 1}), {model_path: 'a.gguf', n: 1});
  t.deepEqual(withoutFolders({model_path: 'C:\\models\\a.gguf'}), {model_path: 'a.gguf'});
  t.deepEqual(withoutFolders({n: 1}), {n: 1});
});
