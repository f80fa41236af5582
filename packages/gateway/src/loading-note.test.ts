import test from 'ava';
import {toDigest, toNodeId} from '@hearsay/core';
import type {EngineReport} from '@hearsay/core';
import {connectTo, openGateway, post} from '../../../test/support/open-gateway.ts';
import {chatEvents, scriptedAnswer, scriptedBody, scriptedCluster} from '../../../test/support/scripted-cluster.ts';
import {loadingNote, waitingNote} from './loading-note.ts';

function engine(name: string, changes: Partial<EngineReport> = {}): EngineReport {
  return {
    name,
    digest: toDigest(`sha256:${'a'.repeat(64)}`),
    sizeBytes: 1,
    processor: 'llama-server',
    context: 1,
    state: 'loading',
    startedSecondsAgo: undefined,
    node: 'local',
    nodeId: toNodeId(`12D3Koo${'A'.repeat(45)}`),
    nodeName: 'spark',
    untilSeconds: undefined,
    slots: 1,
    busy: 0,
    queued: 0,
    failure: undefined,
    ...changes,
  };
}

test('who waits for a model that loads hears how far it is, where, and how long it will take', t => {
  const engines = [engine('other'), engine('Qwen3:4b', {loadedShare: 0.42, loadingSecondsLeft: 11.2, nodeName: 'mac'})];
  t.is(loadingNote('qwen3:4b', engines), 'loading 42% on mac, about 12 s left');
  t.is(loadingNote('qwen3:4b@mac', engines), 'loading 42% on mac, about 12 s left');
  t.is(loadingNote('other', engines), 'loading on spark');
});

test('a model that nobody loads has no note, whatever else is loading', t => {
  t.is(loadingNote('qwen3:4b', [engine('other'), engine('qwen3:4b', {state: 'ready'})]), undefined);
});

test('the comments that keep a waiting stream alive tell of the load', async t => {
  const given = Promise.withResolvers<void>();
  const cluster = scriptedCluster(async () => {
    await given.promise;
    return scriptedAnswer(scriptedBody(chatEvents(['x'])));
  });
  const loading = {...cluster, engines: () => [engine('tiny', {loadedShare: 0.5, nodeName: 'Küche'})]};
  await using gateway = await openGateway(loading, {silenceMs: 10, keepAliveMs: 20});
  using client = await connectTo(gateway.url);
  client.socket.write(post('/v1/chat/completions', '{"model": "tiny", "stream": true, "messages": []}'));
  await client.until(/: waiting, loading 50% on K\?che\n\n/u);
  given.resolve();
  t.regex(await client.until(/\[DONE\]/u), /"content":"x"/u);
});

test('who waits for a turn hears its place and how long that will take', t => {
  t.is(waitingNote(undefined), undefined);
  t.is(waitingNote({position: 3, waitMs: 11_200}), 'waiting as number 3, about 12 s');
});
