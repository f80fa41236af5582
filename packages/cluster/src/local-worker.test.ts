import test from 'ava';
import {automatic, newRequestId} from '@hearsay/core';
import type {EngineHost, ModelStore, StoredModel, WorkRequest, WorkResponse} from '@hearsay/core';
import {digest, model, node} from '../../../test/support/builders.ts';
import {localWorker} from './local-worker.ts';
import type {LocalWorkerDeps} from './local-worker.ts';

const stored: StoredModel = {
  ...model('m', 'a'),
  key: 'm',
  files: ['m.gguf'],
  problem: undefined,
  hashed: undefined,
  modifiedWallMs: 0,
};
const offer: WorkRequest = {
  request: newRequestId({next: () => 0, bytes: length => new Uint8Array(length)}),
  attempt: 1,
  hop: 0,
  digests: [digest('a')],
  endpoint: '/v1/chat/completions',
  needs: ['chat'],
  policy: automatic,
  deadlineMs: undefined,
  bodyBytes: 4,
  waitEstimateMs: 0,
  force: false,
  traceparent: undefined,
  prefix: [1, 2],
};
const signal = new AbortController().signal;

/** A machine whose engine lets wait so long; it keeps what it was asked and what it learned. */
function trial(waitMs: number, body: readonly string[] = []) {
  const forced: boolean[] = [];
  const learned: unknown[] = [];
  async function* chunks(): AsyncGenerator<Uint8Array> {
    for (const text of body) yield Buffer.from(text);
  }
  const response = (): WorkResponse => ({status: 200, contentType: '', body: chunks(), record: () => undefined});
  const engines: Pick<EngineHost, 'reserve' | 'engines'> = {
    reserve(_model, {force}) {
      forced.push(force);
      return {kind: 'accepted', run: async () => response(), [Symbol.asyncDispose]: async () => undefined};
    },
    engines: () => [
      {
        key: 'm',
        model: stored,
        state: 'ready',
        slots: 1,
        busy: 1,
        queued: 0,
        waitMs,
        context: 1,
        readySinceWallMs: 0,
        unloadInMs: undefined,
        failure: undefined,
        processId: 1,
      },
    ],
  };
  const models: Pick<ModelStore, 'find'> = {find: asked => (asked === stored.digest ? stored : undefined)};
  const deps: LocalWorkerDeps = {
    models,
    engines,
    experience: {answered: (_digest, run) => void learned.push(run)},
    affinity: {served: (_digest, prefix) => void learned.push(prefix)},
  };
  return {worker: localWorker(node('S'), deps), forced, learned};
}

test('an offer that expects to wait is let into the line when the true wait is about that', async t => {
  for (const [waitMs, waitEstimateMs, isLetIn] of [
    [4000, 2000, true],
    [4001, 2000, false],
    [1000, 0, false],
    [0, 0, false],
  ] as const) {
    const {worker, forced} = trial(waitMs);
    await worker.offer({...offer, waitEstimateMs}, signal);
    t.deepEqual(forced, [isLetIn], `${waitMs} for ${waitEstimateMs}`);
  }
});

test('from an answer that ended well speeds and prompt are learned', async t => {
  const {worker, learned} = trial(0, [
    'data: {"timings":{"cache_n":1,"prompt_n":2,"prompt_ms":3,',
    '"predicted_n":4}}\n\n',
  ]);
  const lease = await worker.offer(offer, signal);
  if (lease.kind !== 'accepted') return t.fail();
  const {body} = await lease.run(Buffer.from('{}'), signal);
  let text = '';
  for await (const chunk of body) text += Buffer.from(chunk).toString();
  t.true(text.endsWith('"predicted_n":4}}\n\n'), 'unchanged');
  const timings = {cachedTokens: 1, promptTokens: 2, promptMs: 3, outputTokens: 4, outputMs: 0};
  t.deepEqual(learned, [{bodyBytes: 2, timings}, [1, 2]]);
});

test('from an answer that nobody read to its end nothing is learned', async t => {
  const {worker, learned} = trial(0, ['data: {"timings":{"prompt_n":2}}\n\n', 'data: [DONE]\n\n']);
  const lease = await worker.offer(offer, signal);
  if (lease.kind !== 'accepted') return t.fail();
  for await (const _ of (await lease.run(Buffer.from('{}'), signal)).body) break;
  t.deepEqual(learned, []);
});
