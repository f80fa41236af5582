import {once} from 'node:events';
import {mkdtemp, rm} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {bodyBytesMax, Fault, sentBytesMax} from '@hearsay/core';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {realEnvironment} from '../../../test/support/environment.ts';
import {accept, chunks, isLinked, leaseOf, never, readAll} from '../../../test/support/mesh-trial.ts';
import {responseOf, serve, text, workRequest} from '../../../test/support/mesh-trial.ts';
import type {Seen} from '../../../test/support/mesh-trial.ts';
import {until} from '../../../test/support/until.ts';
import {startMesh} from './start-mesh.ts';

test('a short body travels with the offer: it runs before the asker has even read the answer, and once', async t => {
  const [a, b] = await pair(t);
  const ran: Uint8Array[] = [];
  const held = leaseOf(async body => {
    ran.push(body);
    return responseOf(chunks('1', '2'));
  });
  b.offer = async () => held.lease;
  const body = text('{"early": true}');
  await using lease = await accept(a, b, {body, bodyBytes: body.length});
  await until('it runs over there', () => ran.length > 0);
  const response = await lease.run(body, never);
  t.deepEqual(await readAll(response.body), text('12'));
  t.deepEqual(ran, [body]);
  await until('the slot is free', held.disposed);
});

test('an answer that is whole before the asker asks for it is there all the same', async t => {
  const [a, b] = await pair(t);
  const held = leaseOf(async () => responseOf(chunks('1', '2')));
  b.offer = async () => held.lease;
  const body = text('{"early": true}');
  await using lease = await accept(a, b, {body, bodyBytes: body.length});
  await until('it is over there', held.disposed);
  await new Promise(resolve => void setTimeout(resolve, 100)); // and its end has crossed
  const response = await lease.run(body, never);
  t.deepEqual(await readAll(response.body), text('12'));
});

test('a body that came with an offer is not looked at when the answer is no', async t => {
  const [a, b] = await pair(t);
  const body = text('{}');
  b.offer = async () => ({kind: 'busy', reason: 'slots', record: undefined, retryAfterMs: 5});
  const answer = await a.mesh.worker(b.mesh.self).offer(workRequest({body}), never);
  t.is(answer.kind, 'busy');
  b.offer = async () => ({kind: 'refused', code: 'digest', message: 'gone'});
  const refusal = await a.mesh.worker(b.mesh.self).offer(workRequest({body}), never);
  t.is(refusal.kind, 'refused');
  t.is(a.mesh.links().length, 1); // and the connection is as good as before
  b.offer = async () => leaseOf(async () => responseOf(chunks('1'))).lease;
  await using lease = await accept(a, b, {body});
  t.deepEqual(await readAll((await lease.run(body, never)).body), text('1'));
});

test('a long body waits for the yes', async t => {
  const [a, b] = await pair(t);
  const body = new Uint8Array(200_000).fill(32);
  const held = leaseOf(async got => responseOf(chunks(String(got.length))));
  b.offer = async () => held.lease;
  await using lease = await accept(a, b, {body, bodyBytes: body.length});
  t.deepEqual(await readAll((await lease.run(body, never)).body), text('200000'));
});

test('C24: a body that grew behind the door is taken, because every client may send the largest there is', async t => {
  const [a, b] = await pair(t);
  b.offer = async () => leaseOf(async () => responseOf(chunks('1'))).lease;
  await using _lease = await accept(a, b, {bodyBytes: bodyBytesMax + 10_000});
  const answer = await a.mesh.worker(b.mesh.self).offer(workRequest({bodyBytes: sentBytesMax + 1}), never);
  t.like(answer, {kind: 'refused', code: 'too-large'});
});

test('an answer that is cut before the asker asks for it is a failure, and harms nobody else', async t => {
  const [a, b] = await pair(t);
  const held = leaseOf(async () => responseOf(cut()));
  b.offer = async () => held.lease;
  await using lease = await accept(a, b, {body: text('{}')});
  await until('it is over there', held.disposed);
  await new Promise(resolve => void setTimeout(resolve, 100)); // and its end has crossed
  const reading = (async () => readAll((await lease.run(text('{}'), never)).body))();
  await t.throwsAsync(reading, {code: 'PEER_FAILED'});
});

async function* cut(): AsyncGenerator<Uint8Array> {
  yield text('half');
  throw new Error('the engine died');
}

test('a lease that is given back unused ends the run of a body that came early', async t => {
  const [a, b] = await pair(t);
  const held = leaseOf(async (_, signal) => {
    await once(signal, 'abort');
    throw new Error('gone');
  });
  b.offer = async () => held.lease;
  const lease = await accept(a, b, {body: text('{}')});
  await lease[Symbol.asyncDispose]();
  await t.notThrowsAsync(until('the slot is free', held.disposed));
});

test('a run of a body that came early and breaks before any output fails with its code and reason', async t => {
  const [a, b] = await pair(t);
  for (const isLate of [false, true]) {
    const held = leaseOf(async () => Promise.reject(new Fault('ENGINE_FAILED', 'no such tensor')));
    b.offer = async () => held.lease;
    await using lease = await accept(a, b, {body: text('{}'), attempt: isLate ? 2 : 1});
    if (isLate) await until('it is over there', held.disposed);
    if (isLate) await new Promise(resolve => void setTimeout(resolve, 100)); // and its end has crossed
    await t.throwsAsync(lease.run(text('{}'), never), {code: 'ENGINE_FAILED', message: 'no such tensor'});
  }
});

test('an answer much longer than a frame that comes at once arrives whole', async t => {
  const [a, b] = await pair(t);
  const long = 'x'.repeat(300_000);
  b.offer = async () =>
    leaseOf(async () => {
      await new Promise(resolve => void setTimeout(resolve, 3)); // accept and this travel together
      return responseOf(chunks(long));
    }).lease;
  for (let request = 0; request < 10; request += 1) {
    await using lease = await accept(a, b, {body: text('{}'), attempt: request + 1});
    t.is((await readAll((await lease.run(text('{}'), never)).body)).length, long.length);
  }
});

async function pair(t: ExecutionContext): Promise<readonly [Seen, Seen]> {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-mesh-'));
  t.teardown(async () => rm(folder, {recursive: true}));
  const settings = {mesh: 'home', port: 0, defaultPort: 4328, discovery: false, listen: ['/ip4/127.0.0.1/tcp/0']};
  const start = async (nodeName: string, peers: readonly string[]): Promise<Seen> => {
    const identityFile = join(folder, `${nodeName}.key`);
    const mesh = await startMesh({...settings, identityFile, nodeName, peers}, realEnvironment());
    t.teardown(async () => mesh[Symbol.asyncDispose]());
    return serve(mesh);
  };
  const b = await start('b', []);
  const a = await start('a', b.mesh.addresses());
  await until('they meet', () => isLinked(a, b));
  return [a, b];
}
