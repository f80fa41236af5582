import test from 'ava';
import {openGateway} from '../../../test/support/open-gateway.ts';
import {scriptedAnswer, scriptedBody, scriptedCluster} from '../../../test/support/scripted-cluster.ts';

test('C66: a form for a recording crosses unchanged, with the boundary that it was sent with', async t => {
  const json = {contentType: 'text/plain; charset=utf-8'};
  const cluster = scriptedCluster(() => scriptedAnswer(scriptedBody(['hello']), json));
  await using gateway = await openGateway(cluster, {aliases: {'whisper-1': 'tiny'}});
  const body = ['--x', 'content-disposition: form-data; name="model"', '', 'whisper-1', '--x--', ''].join('\r\n');
  const headers = {'content-type': 'multipart/form-data; boundary=x'};
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
