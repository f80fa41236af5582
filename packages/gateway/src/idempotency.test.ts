import test from 'ava';
import type {ExecutionContext} from 'ava';
import {Fault} from '@hearsay/core';
import {openGateway} from '../../../test/support/open-gateway.ts';
import {chatEvents, scriptedAnswer, scriptedBody, scriptedCluster} from '../../../test/support/scripted-cluster.ts';
import type {Script, ScriptedCluster} from '../../../test/support/scripted-cluster.ts';
import {until} from '../../../test/support/until.ts';

interface Place {
  readonly cluster: ScriptedCluster;
  readonly ask: (key: string | undefined, changes?: object, init?: RequestInit) => Promise<Response>;
}

async function place(t: ExecutionContext, script: Script): Promise<Place> {
  const cluster = scriptedCluster(script);
  const gateway = await openGateway(cluster);
  t.teardown(async () => gateway[Symbol.asyncDispose]());
  return {
    cluster,
    ask: async (key, changes = {}, init = {}) =>
      fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: key === undefined ? {} : {'idempotency-key': key},
        body: JSON.stringify({model: 'tiny', messages: [], stream: true, ...changes}),
        ...init,
      }),
  };
}

const whole: Script = () => scriptedAnswer(scriptedBody(chatEvents([' 1', ' 2'])));

/** Sends its first piece, and the rest when the gate opens. */
function gated(): {readonly script: Script; readonly open: () => void} {
  const gate = Promise.withResolvers<void>();
  async function* events(): AsyncGenerator<string> {
    const [first = '', ...rest] = chatEvents([' 1', ' 2']);
    yield first;
    await gate.promise;
    yield* rest;
  }
  return {script: () => scriptedAnswer(scriptedBody(events())), open: gate.resolve};
}

test('a finished answer is given again, byte for byte, with the facts of its run', async t => {
  for (const stream of [true, false]) {
    const {ask, cluster} = await place(t, whole);
    const first = await ask('k', {stream});
    const text = await first.text();
    const again = await ask('k', {stream});
    t.is(await again.text(), text);
    t.is(cluster.dispatched.length, 1);
    t.is(again.headers.get('idempotent-replayed'), 'true');
    t.is(first.headers.get('idempotent-replayed'), null);
    for (const name of ['content-type', 'x-hearsay-node', 'x-hearsay-request']) {
      t.is(again.headers.get(name), first.headers.get(name), name);
    }
  }
});

test('a second request joins the first while it runs, and both hear the whole answer', async t => {
  const {script, open} = gated();
  const {ask, cluster} = await place(t, script);
  const first = await ask('k');
  const second = await ask('k');
  t.is(second.headers.get('idempotent-replayed'), 'true');
  open();
  const texts = await Promise.all([first.text(), second.text()]);
  t.regex(texts[0], /" 2".*\[DONE\]/su);
  t.is(texts[0], texts[1]);
  t.is(cluster.dispatched.length, 1);
});

test('a second request that comes before the first has any output waits with it', async t => {
  const gate = Promise.withResolvers<void>();
  const {ask, cluster} = await place(t, async (request, signal) => {
    await gate.promise;
    return whole(request, signal);
  });
  const first = ask('k');
  await until('it runs', () => cluster.dispatched.length === 1);
  const second = ask('k');
  const third = await ask('k', {messages: [1]});
  t.is(third.status, 422);
  gate.resolve();
  t.is(await (await first).text(), await (await second).text());
  t.is(cluster.dispatched.length, 1);
});

test('the key of another request is refused with 422; no key and another key run anew', async t => {
  const {ask, cluster} = await place(t, whole);
  await (await ask('k')).text();
  for (const changes of [{max_tokens: 5}, {stream: false}]) {
    const other = await ask('k', changes);
    t.is(other.status, 422);
    t.like(await other.json(), {error: {code: 'idempotency_key_reused'}});
  }
  for (const key of [undefined, undefined, 'other', '']) await (await ask(key)).text();
  t.is(cluster.dispatched.length, 5);
  t.is((await ask('k'.repeat(256))).status, 400);
});

test('what failed runs again: before its output, within it, and when its client had left', async t => {
  let fault: Fault | undefined = new Fault('OVERLOADED', 'all are busy');
  const {ask, cluster} = await place(t, async (request, signal) => {
    if (fault?.code === 'OVERLOADED') throw fault;
    if (fault === undefined) return whole(request, signal);
    async function* broken(): AsyncGenerator<string> {
      yield* chatEvents([' 1']).slice(0, 2);
      throw new Fault('INTERRUPTED', 'it broke off');
    }
    return scriptedAnswer(scriptedBody(broken()));
  });
  t.is((await ask('k')).status, 429);
  fault = new Fault('INTERRUPTED', 'it broke off');
  t.regex(await (await ask('k')).text(), /"error"/u);
  fault = undefined;
  t.regex(await (await ask('k')).text(), /\[DONE\]/u);
  t.is(cluster.dispatched.length, 3);
});

test('when the first client leaves, the second is told, never given half an answer as a whole one', async t => {
  const {script} = gated();
  const {ask, cluster} = await place(t, script);
  const leaves = new AbortController();
  const first = await ask('k', {}, {signal: leaves.signal});
  t.is(first.status, 200);
  const second = await ask('k');
  const text = t.throwsAsync(second.text());
  leaves.abort();
  await text;
  await until('its key is free again', async () => {
    const third = await ask('k', {}, {signal: AbortSignal.timeout(5000)});
    await third.body?.cancel();
    return third.headers.get('idempotent-replayed') === null;
  });
  t.true(cluster.dispatched.length >= 2);
});

test('an answer that is too long to be kept is told to a second request with 409, and runs anew afterwards', async t => {
  const gate = Promise.withResolvers<void>();
  const long = 'x'.repeat(300_000);
  const {ask, cluster} = await place(t, () => {
    async function* events(): AsyncGenerator<string> {
      const all = chatEvents([long, ' 2']);
      yield* all.slice(0, 2);
      await gate.promise;
      yield* all.slice(2);
    }
    return scriptedAnswer(scriptedBody(events()));
  });
  const first = await ask('k');
  const reader = first.body?.getReader();
  let bytes = 0;
  while (bytes < 300_000) bytes += (await reader?.read())?.value?.length ?? 0;
  const second = await ask('k');
  t.is(second.status, 409);
  t.is(second.headers.get('retry-after'), '5');
  gate.resolve();
  while ((await reader?.read())?.done === false);
  await (await ask('k')).text();
  t.is(cluster.dispatched.length, 2);
});
