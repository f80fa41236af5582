import test from 'ava';
import type {ExecutionContext} from 'ava';
import {Fault} from '@hearsay/core';
import type {Busy, Refusal} from '@hearsay/core';
import {never, workRequest, leaseOf, responseOf, serve, linkedPair, accept} from '../support/mesh-trial.ts';
import {chunks, text, readAll, fails, one, pieces, once, settles} from '../support/mesh-trial.ts';
import type {Check, MeshPlace} from '../support/mesh-trial.ts';
import {controlContract} from './control-contract.ts';
import {gossipContract} from './gossip-contract.ts';
import {until} from '../support/until.ts';

export function meshContract(name: string, makePlace: () => Promise<MeshPlace>): void {
  const check = (title: string, run: (t: ExecutionContext, place: MeshPlace) => Promise<void>): void => {
    test.serial(`${name}: ${title}`, async t => {
      await using place = await makePlace();
      await run(t, place);
    });
  };
  gossipContract(check);
  controlContract(check);
  offerContract(check);
  runContract(check);
  failureContract(check);
}

function offerContract(check: Check): void {
  check('busy and refused arrive as values, with everything in them', async (t, place) => {
    const [a, b] = await linkedPair(place);
    const record = await b.mesh.sign(text('fresh'));
    const busy: Busy = {kind: 'busy', reason: 'slots', record, retryAfterMs: 250};
    const refusal: Refusal = {kind: 'refused', code: 'digest', message: 'no such model here'};
    b.offer = async () => busy;
    t.deepEqual(await a.mesh.worker(b.mesh.self).offer(workRequest(), never), busy);
    b.offer = async () => refusal;
    t.deepEqual(await a.mesh.worker(b.mesh.self).offer(workRequest(), never), refusal);
  });

  check('an offer arrives complete, with the hop counter one higher', async (t, place) => {
    const [a, b] = await linkedPair(place);
    const request = workRequest({
      policy: {placement: {kind: 'prefer', nodes: ['b', 'c']}, exclude: ['d'], localRequired: true},
      deadlineMs: 5000,
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      force: true,
    });
    await a.mesh.worker(b.mesh.self).offer(request, never);
    t.deepEqual(b.offers, [{...request, hop: 1}]);
  });

  check('an offer that the worker cannot answer arrives as a refusal that says why', async (t, place) => {
    const [a, b] = await linkedPair(place);
    b.offer = async () => {
      throw new Fault('INTERNAL', 'the cupboard is bare');
    };
    const answer = await a.mesh.worker(b.mesh.self).offer(workRequest(), never);
    t.deepEqual(answer, {kind: 'refused', code: 'broken', message: 'the cupboard is bare'});
  });

  check('an offer to a node that is not there fails with PEER_FAILED', async (t, place) => {
    const a = await serve(await place.mesh('a'));
    const absent = await place.mesh('absent');
    await fails(t, a.mesh.worker(absent.self).offer(workRequest(), never));
    await fails(t, a.mesh.inventory(absent.self, never));
  });

  check('a lease that is given back unused is given back on the worker too', async (t, place) => {
    const [a, b] = await linkedPair(place);
    const held = leaseOf(async () => responseOf(chunks()));
    b.offer = async () => held.lease;
    const lease = await accept(a, b);
    t.false(held.disposed());
    await lease[Symbol.asyncDispose]();
    await until('the worker gets its slot back', () => held.disposed());
    t.pass();
  });
}

function runContract(check: Check): void {
  check('an answer arrives chunk by chunk, then the record, and the lease is given back', async (t, place) => {
    const [a, b] = await linkedPair(place);
    const record = await b.mesh.sign(text('after'));
    const gates = [1, 2, 3].map(() => Promise.withResolvers<void>());
    const held = leaseOf(async body => {
      t.deepEqual(body, text('{}'));
      const body2 = async function* (): AsyncGenerator<Uint8Array> {
        for (const [index, gate] of gates.entries()) {
          await gate.promise;
          yield text(` ${index + 1}`);
        }
      };
      return responseOf(body2(), record);
    });
    b.offer = async () => held.lease;
    await using lease = await accept(a, b);
    const response = await lease.run(text('{}'), never);
    t.is(response.status, 200);
    t.is(response.contentType, 'text/event-stream');
    t.is(response.record(), undefined);
    gates[0]?.resolve();
    const got: string[] = [];
    for await (const chunk of response.body) {
      got.push(new TextDecoder().decode(chunk));
      gates[got.length]?.resolve(); // the next is made only after this one has arrived
    }
    t.deepEqual(got, [' 1', ' 2', ' 3']);
    t.deepEqual(response.record(), record);
    await until('the worker gets its slot back', () => held.disposed());
  });

  check('a body of five megabytes arrives whole in both directions', async (t, place) => {
    const [a, b] = await linkedPair(place);
    const bytes = Uint8Array.from({length: 5_000_000}, (_, index) => (index * 31) % 251);
    b.offer = async () => leaseOf(async body => responseOf(pieces(body, 100_000))).lease;
    await using lease = await accept(a, b, {bodyBytes: bytes.length});
    const response = await lease.run(bytes, never);
    t.is(Buffer.compare(await readAll(response.body), bytes), 0);
  });

  check('a hundred requests run at once', async (t, place) => {
    const [a, b] = await linkedPair(place);
    const all = Promise.withResolvers<void>();
    let running = 0;
    b.offer = async () =>
      leaseOf(async body => {
        running += 1;
        if (running === 100) all.resolve();
        await all.promise; // ends only if all run at the same time
        return responseOf(pieces(body, 1));
      }).lease;
    const answers = Array.from({length: 100}, async (_, index) => {
      const body = text(`request ${index}`);
      await using lease = await accept(a, b, {bodyBytes: body.length});
      const response = await lease.run(body, never);
      return Buffer.compare(await readAll(response.body), body) === 0;
    });
    t.true((await Promise.all(answers)).every(Boolean));
  });

  check('a slow reader holds the worker back, however long the answer is', async (t, place) => {
    const [a, b] = await linkedPair(place);
    const chunk = new Uint8Array(64 * 1024);
    let made = 0;
    const total = 64 * 1024 * 1024;
    const endless = async function* (): AsyncGenerator<Uint8Array> {
      for (; made < total; made += chunk.length) yield chunk;
    };
    b.offer = async () => leaseOf(async () => responseOf(endless())).lease;
    await using lease = await accept(a, b);
    const response = await lease.run(text('{}'), never);
    const reader = response.body[Symbol.asyncIterator]();
    let read = (await reader.next()).value?.length ?? 0;
    await settles(() => made);
    t.true(made < 8 * 1024 * 1024, `${made} bytes were made for a reader that took ${read}`);
    for (let next = await reader.next(); next.done !== true; next = await reader.next()) read += next.value.length;
    t.is(read, total);
  });
}

/** Times that a request is cancelled in each phase. */
const cancels = 5;

function failureContract(check: Check): void {
  check('cancelling reaches the run on the worker within 100 ms, before and after output', async (t, place) => {
    const [a, b] = await linkedPair(place);
    const tookMs: Record<string, number[]> = {before: [], after: []};
    for (const phase of Array.from({length: 2 * cancels}, (_, index) => (index % 2 === 0 ? 'before' : 'after'))) {
      const stopped = Promise.withResolvers<number>();
      let isRunning = false;
      const held = leaseOf(async (_body, signal) => {
        isRunning = true;
        const aborted = once(signal);
        void aborted.then(() => stopped.resolve(performance.now()));
        if (phase === 'before') await aborted;
        return responseOf(one(text('1'), aborted));
      });
      b.offer = async () => held.lease;
      const lease = await accept(a, b);
      const cancel = new AbortController();
      const running = lease.run(text('{}'), cancel.signal);
      let rest: Promise<unknown> = running;
      if (phase === 'after') {
        const reader = (await running).body[Symbol.asyncIterator]();
        await reader.next();
        rest = reader.next();
      } else await until('the run begins', () => isRunning);
      const since = performance.now();
      cancel.abort();
      await fails(t, rest, 'CANCELLED');
      tookMs[phase]?.push((await stopped.promise) - since);
      await until('the worker gets its slot back', () => held.disposed());
    }
    // The quickest: whatever else runs on the machine can only slow one down.
    for (const [phase, all] of Object.entries(tookMs)) t.true(Math.min(...all) < 100, `${phase}: ${all.join(', ')} ms`);
  });

  check('an answer that breaks on the worker is a failure, never a clean end', async (t, place) => {
    const [a, b] = await linkedPair(place);
    const breaks = async function* (): AsyncGenerator<Uint8Array> {
      yield text('1');
      throw new Fault('ENGINE_FAILED', 'llama-server died');
    };
    b.offer = async () => leaseOf(async () => responseOf(breaks())).lease;
    await using lease = await accept(a, b);
    const response = await lease.run(text('{}'), never);
    await fails(t, readAll(response.body));
    t.is(response.record(), undefined);
  });

  check('what an answer has said until it breaks is read, and then comes the failure', async (t, place) => {
    const [a, b] = await linkedPair(place);
    const isRead = Promise.withResolvers<void>();
    const breaks = async function* (): AsyncGenerator<Uint8Array> {
      yield text('1');
      await isRead.promise; // so that the asker waits for what comes together with the break
      yield text('2');
      yield text('3');
      throw new Fault('ENGINE_FAILED', 'llama-server died');
    };
    b.offer = async () => leaseOf(async () => responseOf(breaks())).lease;
    await using lease = await accept(a, b);
    const response = await lease.run(text('{}'), never);
    let said = '';
    const reading = async (): Promise<void> => {
      for await (const chunk of response.body) {
        said += new TextDecoder().decode(chunk);
        isRead.resolve();
      }
    };
    await fails(t, reading());
    t.is(said, '123');
  });

  check('a run that breaks before any output fails with its code and reason', async (t, place) => {
    const [a, b] = await linkedPair(place);
    const held = leaseOf(async () => {
      throw new Fault('ENGINE_FAILED', 'llama-server did not start: out of memory');
    });
    b.offer = async () => held.lease;
    await using lease = await accept(a, b);
    const error = await t.throwsAsync(lease.run(text('{}'), never), {instanceOf: Fault});
    t.is(error.code, 'ENGINE_FAILED');
    t.is(error.message, 'llama-server did not start: out of memory');
    await until('the worker gets its slot back', () => held.disposed());
  });

  check('an answer that is cut because the worker leaves is a failure', async (t, place) => {
    const [a, b] = await linkedPair(place);
    const held = leaseOf(async (_body, signal) => responseOf(one(text('1'), once(signal))));
    b.offer = async () => held.lease;
    await using lease = await accept(a, b);
    const reader = (await lease.run(text('{}'), never)).body[Symbol.asyncIterator]();
    await reader.next();
    const rest = reader.next();
    await Promise.all([b.mesh[Symbol.asyncDispose](), fails(t, rest)]);
    t.true(held.disposed());
  });

  check('an asking node that leaves ends its runs on the worker', async (t, place) => {
    const [a, b] = await linkedPair(place);
    const held = leaseOf(async (_body, signal) => responseOf(one(text('1'), once(signal))));
    b.offer = async () => held.lease;
    const lease = await accept(a, b);
    const reader = (await lease.run(text('{}'), never)).body[Symbol.asyncIterator]();
    await reader.next();
    const rest = reader.next();
    await Promise.all([a.mesh[Symbol.asyncDispose](), fails(t, rest)]);
    await until('the worker gets its slot back', () => held.disposed());
  });
}

/** One chunk, then silence until `end`, then a failure as a cancelled engine gives it. */
