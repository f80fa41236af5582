import test from 'ava';
import type {EngineReport, ModelReport} from '@hearsay/core';
import {openGateway} from '../../../test/support/open-gateway.ts';
import {modelReport, scriptedAnswer, scriptedBody, scriptedCluster} from '../../../test/support/scripted-cluster.ts';
import {EventSplitter} from './event-stream.ts';
import type {ServerEvent} from './event-stream.ts';
import {changesBetween, pictureOf} from './mesh-changes.ts';
import type {MeshPicture} from './mesh-changes.ts';

const engine = (changes: Partial<EngineReport> = {}): EngineReport => {
  const {name, digest, nodes} = modelReport();
  const [node] = nodes;
  if (node === undefined) throw new Error('the builder gives one node');
  return {
    name,
    digest,
    sizeBytes: 1,
    processor: 'llama-server',
    context: 1024,
    state: 'loading',
    startedSecondsAgo: undefined,
    node: 'local',
    nodeId: node.id,
    nodeName: node.name,
    untilSeconds: 300,
    slots: 2,
    busy: 0,
    queued: 0,
    failure: undefined,
    ...changes,
  };
};

const picture = (models: readonly ModelReport[], engines: readonly EngineReport[] = []): MeshPicture =>
  pictureOf({nodes: () => [], models: () => models, engines: () => engines});

test('what comes, changes and goes is told once each, and what is gone first', t => {
  const before = picture([modelReport()], [engine()]);
  const after = picture([modelReport({name: 'other'})], [engine({state: 'ready'})]);
  const told = changesBetween(before, after).map(({kind, change, report: {name}}) => `${kind} ${name} ${change}`);
  t.deepEqual(told, ['model tiny gone', 'engine tiny changed', 'model other appeared']);
  t.deepEqual(changesBetween(after, after), []);
});

test('what moves all the time is no change', t => {
  const before = picture([modelReport({hashed: 0.1})], [engine({untilSeconds: 300, startedSecondsAgo: 1})]);
  const after = picture([modelReport({hashed: 0.2})], [engine({untilSeconds: 299, startedSecondsAgo: 2})]);
  t.deepEqual(changesBetween(before, after), []);
});

test('a listener is told what there is, and then what becomes of it', async t => {
  let models: readonly ModelReport[] = [modelReport()];
  const cluster = {...scriptedCluster(() => scriptedAnswer(scriptedBody([]))), models: () => models};
  await using gateway = await openGateway(cluster);
  const response = await fetch(`${gateway.url}/hearsay/v1/events`);
  t.is(response.headers.get('content-type'), 'text/event-stream; charset=utf-8');
  const events = eventsOf(response);
  t.deepEqual(await next(events), ['model', 'appeared', 'loaded']);
  models = [modelReport({status: 'unloaded'})];
  t.deepEqual(await next(events), ['model', 'changed', 'unloaded']);
  models = [];
  t.deepEqual(await next(events), ['model', 'gone', 'unloaded']);
  await events.return(undefined);
});

test('too many listeners are refused', async t => {
  const cluster = scriptedCluster(() => scriptedAnswer(scriptedBody([])));
  await using gateway = await openGateway(cluster);
  const open = new AbortController();
  const listen = async (): Promise<number> =>
    (await fetch(`${gateway.url}/hearsay/v1/events`, {signal: open.signal})).status;
  const statuses = await Promise.all(Array.from({length: 64}, listen));
  t.true(statuses.every(status => status === 200));
  t.is(await listen(), 429);
  open.abort();
});

async function* eventsOf({body}: Response): AsyncGenerator<ServerEvent, void, undefined> {
  const splitter = new EventSplitter();
  for await (const bytes of body ?? []) yield* splitter.push(bytes);
}

async function next(events: AsyncGenerator<ServerEvent, void, undefined>): Promise<readonly unknown[]> {
  const {value} = await events.next();
  if (!value) throw new Error('the stream ended');
  const data: unknown = JSON.parse(value.data);
  const {change, report}: {change?: unknown; report?: {status?: unknown}} = Object(data);
  return [value.name, change, report?.status];
}
