import test from 'ava';
import {openGateway} from '../../../test/support/open-gateway.ts';
import {connectTo, eventually, post} from '../../../test/support/open-gateway.ts';
import {chatEvents, scriptedAnswer, scriptedBody} from '../../../test/support/scripted-cluster.ts';
import {modelReport, scriptedCluster, statusReport} from '../../../test/support/scripted-cluster.ts';
import {Metrics} from './metrics.ts';

const line = /^(?:# (?:HELP|TYPE) hearsay_\w+ .+|hearsay_\w+(?:\{(?:\w+="(?:[^"\\]|\\.)*",?)*\})? [\d.e+-]+)$/u;
const chat = JSON.stringify({model: 'tiny', messages: [], stream: true});

async function metricsOf(url: string): Promise<string> {
  const response = await fetch(`${url}/metrics`);
  const text = await response.text();
  for (const each of text.trimEnd().split('\n')) if (!line.test(each)) throw new Error(`not a metric: ${each}`);
  return text;
}

test('C10: metrics count answers by path and status, and nothing is in flight when all have ended', async t => {
  const cluster = scriptedCluster(() => scriptedAnswer(scriptedBody(chatEvents(['x']))));
  await using gateway = await openGateway(cluster);
  for (let turn = 0; turn < 3; turn += 1) {
    await (await fetch(`${gateway.url}/v1/chat/completions`, {method: 'POST', body: chat})).text();
  }
  await (await fetch(`${gateway.url}/chat/completions`, {method: 'POST', body: '{'})).text();
  const text = await metricsOf(gateway.url);
  t.regex(text, /^hearsay_requests_total\{path="\/v1\/chat\/completions",status="200"\} 3$/mu);
  t.regex(text, /^hearsay_requests_total\{path="\/v1\/chat\/completions",status="400"\} 1$/mu);
  t.regex(text, /^hearsay_request_seconds_count\{path="\/v1\/chat\/completions"\} 4$/mu);
  t.regex(text, /^hearsay_request_seconds_bucket\{path="\/v1\/chat\/completions",le="\+Inf"\} 4$/mu);
  t.regex(text, /^hearsay_requests_in_flight 0$/mu);
  t.is(cluster.dispatched.length, 3, 'metrics themselves wake nobody');
});

test('C9: a client that leaves counts as 499', async t => {
  const cluster = scriptedCluster(() => new Promise(() => {}));
  await using gateway = await openGateway(cluster);
  using client = await connectTo(gateway.url);
  client.socket.write(post('/v1/chat/completions', chat));
  await eventually(() => cluster.dispatched.length === 1, 'dispatched');
  t.regex(await metricsOf(gateway.url), /^hearsay_requests_in_flight 1$/mu);
  client.socket.destroy();
  await eventually(() => gateway.inFlight() === 0, 'forgotten');
  t.regex(await metricsOf(gateway.url), /^hearsay_requests_total\{path="[^"]+",status="499"\} 1$/mu);
});

test('names of nodes and models cannot break a line', t => {
  const text = new Metrics().text({nodes: [], engines: [], models: []}, {...statusReport(), name: 'a"b\\c\nd'}, 0);
  t.true(text.includes(String.raw`node="a\"b\\c\nd"`));
  for (const each of text.trimEnd().split('\n')) t.regex(each, line);
});

test('a node is ready while somebody has a model', async t => {
  for (const [models, status] of [
    [[modelReport()], 200],
    [[modelReport({problem: 'torn'})], 503],
    [[], 503],
  ] as const) {
    const cluster = scriptedCluster(() => new Promise(() => {}), models);
    await using gateway = await openGateway(cluster);
    const response = await fetch(`${gateway.url}/ready`);
    t.is(response.status, status);
    t.is(response.headers.get('retry-after'), status === 503 ? '1' : null);
    t.is((await fetch(`${gateway.url}/health`)).status, 200, 'healthy all the same');
  }
});
