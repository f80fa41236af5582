import test from 'ava';
import type {ExecutionContext} from 'ava';
import {Fault} from '@hearsay/core';
import type {
  AgedRecord,
  Busy,
  Digest,
  FaultCode,
  Lease,
  Link,
  Mesh,
  MeshHandlers,
  NodeId,
  Refusal,
} from '@hearsay/core';
import type {RequestId, SignedRecord, WorkRequest, WorkResponse} from '@hearsay/core';
import {until} from '../support/until.ts';

/** One implementation of the mesh: makes nodes that can meet, and takes them down again. */
export interface MeshPlace extends AsyncDisposable {
  mesh(nodeName: string, meshName?: string): Promise<Mesh>;
}

/** What one node of a test saw, and what it answers. */
export interface Seen {
  readonly mesh: Mesh;
  readonly judged: AgedRecord[];
  readonly links: Map<NodeId, Link>;
  readonly offers: WorkRequest[];
  newest: readonly AgedRecord[];
  offer: MeshHandlers['offer'];
}

const digest = `sha256:${'ab'.repeat(32)}` as Digest;
const never = new AbortController().signal;

export function workRequest(changes: Partial<WorkRequest> = {}): WorkRequest {
  return {
    request: '0123456789abcdef01234567' as RequestId,
    attempt: 1,
    hop: 0,
    digests: [digest],
    endpoint: '/v1/chat/completions',
    needs: ['chat'],
    policy: {placement: {kind: 'auto'}, localRequired: true},
    deadlineMs: undefined,
    bodyBytes: 2,
    waitEstimateMs: 0,
    force: false,
    traceparent: undefined,
    ...changes,
  };
}

export interface Run {
  readonly disposed: () => boolean;
  readonly lease: Lease;
}

/** A lease that runs what it is given and tells whether it was given back. */
export function leaseOf(run: (body: Uint8Array, signal: AbortSignal) => Promise<WorkResponse>): Run {
  let disposed = false;
  const dispose = async (): Promise<void> => {
    disposed = true;
  };
  return {
    disposed: () => disposed,
    lease: {kind: 'accepted', digest, record: undefined, run, [Symbol.asyncDispose]: dispose},
  };
}

export function responseOf(body: AsyncIterable<Uint8Array>, record?: SignedRecord): WorkResponse {
  return {status: 200, contentType: 'text/event-stream', body, record: () => record};
}

/** Starts to serve and notes everything. */
export async function serve(mesh: Mesh): Promise<Seen> {
  const seen: Seen = {
    mesh,
    judged: [],
    links: new Map(),
    offers: [],
    newest: [],
    offer: async () => ({kind: 'refused', code: 'broken', message: 'no offer was expected'}),
  };
  await mesh.serve({
    judge: aged => {
      seen.judged.push(aged);
      return 'accept';
    },
    newest: () => seen.newest,
    inventory: () => text(`inventory of ${mesh.self}`),
    offer: (request, from, signal) => {
      seen.offers.push(request);
      return seen.offer(request, from, signal);
    },
    linkChanged: (node, link) => {
      if (link === undefined) seen.links.delete(node);
      else seen.links.set(node, link);
    },
  });
  return seen;
}

export function isLinked(a: Seen, b: Seen): boolean {
  return a.links.get(b.mesh.self)?.admitted === true && b.links.get(a.mesh.self)?.admitted === true;
}

export async function linkedPair(place: MeshPlace): Promise<[Seen, Seen]> {
  const a = await serve(await place.mesh('a'));
  const b = await serve(await place.mesh('b'));
  await until('a and b meet', () => isLinked(a, b));
  return [a, b];
}

export async function accept(asker: Seen, worker: Seen, changes: Partial<WorkRequest> = {}): Promise<Lease> {
  const answer = await asker.mesh.worker(worker.mesh.self).offer(workRequest(changes), never);
  if (answer.kind !== 'accepted') throw new Error(`expected a lease, got ${JSON.stringify(answer)}`);
  return answer;
}

async function* chunks(...texts: string[]): AsyncGenerator<Uint8Array> {
  for (const each of texts) yield text(each);
}

export function text(value: string): Uint8Array {
  return new TextEncoder().encode(value);
}

async function readAll(body: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const part of body) parts.push(part);
  return new Uint8Array(Buffer.concat(parts));
}

async function fails(t: ExecutionContext, work: Promise<unknown>, code: FaultCode = 'PEER_FAILED'): Promise<void> {
  const error = await t.throwsAsync(work, {instanceOf: Fault});
  t.is(error.code, code, error.message);
}

/** Every implementation of the mesh passes these. */
export function meshContract(name: string, makePlace: () => Promise<MeshPlace>): void {
  const check = (title: string, run: (t: ExecutionContext, place: MeshPlace) => Promise<void>): void => {
    test(`${name}: ${title}`, async t => {
      await using place = await makePlace();
      await run(t, place);
    });
  };
  gossipContract(check);
  offerContract(check);
  runContract(check);
  failureContract(check);
}

type Check = (title: string, run: (t: ExecutionContext, place: MeshPlace) => Promise<void>) => void;

function gossipContract(check: Check): void {
  check('a published record reaches all other nodes', async (t, place) => {
    const a = await serve(await place.mesh('a'));
    const b = await serve(await place.mesh('b'));
    const c = await serve(await place.mesh('c'));
    await until('all three meet', () => isLinked(a, b) && isLinked(a, c) && isLinked(b, c));
    const record = await a.mesh.sign(text('hello'));
    a.newest = [{record, ageMs: 0}]; // gossip reaches a newcomer only after both have subscribed; the exchange covers that
    await a.mesh.publish(record);
    for (const each of [b, c]) {
      await until('the record arrives', () => each.judged.length > 0);
      t.deepEqual(each.judged[0]?.record, record);
    }
  });

  check('a publish that nobody hears is no error, and the same record twice is harmless', async (t, place) => {
    const a = await serve(await place.mesh('a'));
    const record = await a.mesh.sign(text('hello'));
    await t.notThrowsAsync(a.mesh.publish(record));
    const b = await serve(await place.mesh('b'));
    await until('both meet', () => isLinked(a, b));
    await until('both copies arrive', async () => {
      await a.mesh.publish(record);
      return b.judged.length >= 2;
    });
    t.deepEqual(b.judged[0]?.record, b.judged[1]?.record);
  });

  check('a node that comes late gets the newest records by exchange, with their age', async (t, place) => {
    const a = await serve(await place.mesh('a'));
    const record = await a.mesh.sign(text('old news'));
    a.newest = [{record, ageMs: 1234}];
    const late = await serve(await place.mesh('late'));
    await until('the exchange brings the record', () => late.judged.length > 0);
    t.deepEqual(late.judged[0]?.record, record);
    t.true((late.judged[0]?.ageMs ?? 0) >= 1234);
  });

  check('a record with a wrong signature never reaches the judge', async (t, place) => {
    const a = await serve(await place.mesh('a'));
    const record = await a.mesh.sign(text('true'));
    const good = await a.mesh.sign(text('good'));
    const forged = {...record, payload: text('forged')};
    a.newest = [forged, good].map(each => ({record: each, ageMs: 0}));
    const b = await serve(await place.mesh('b'));
    await until('the good record arrives', () => b.judged.length > 0);
    await a.mesh.publish(forged);
    await until('gossip arrives', async () => {
      await a.mesh.publish(good);
      return b.judged.length >= 3;
    });
    t.true(b.judged.every(({record: {payload}}) => new TextDecoder().decode(payload) === 'good'));
  });

  check('a node of another mesh gets nothing', async (t, place) => {
    const [a, b] = await linkedPair(place);
    const stranger = await serve(await place.mesh('stranger', 'other'));
    const record = await a.mesh.sign(text('ours'));
    a.newest = [{record, ageMs: 0}];
    await a.mesh.publish(record);
    await until('the record arrives at a member', () => b.judged.length > 0);
    await fails(t, stranger.mesh.worker(a.mesh.self).offer(workRequest(), never));
    await fails(t, stranger.mesh.inventory(a.mesh.self, never));
    await fails(t, a.mesh.worker(stranger.mesh.self).offer(workRequest(), never));
    t.deepEqual(stranger.judged, []);
    t.false([...stranger.links.values()].some(({admitted}) => admitted));
    t.false(a.links.get(stranger.mesh.self)?.admitted ?? false);
  });

  check('the inventory of a peer arrives as it was given', async (t, place) => {
    const [a, b] = await linkedPair(place);
    t.deepEqual(await a.mesh.inventory(b.mesh.self, never), text(`inventory of ${b.mesh.self}`));
  });

  check('links name the peers that are there, and no more after they left', async (t, place) => {
    const [a, b] = await linkedPair(place);
    t.deepEqual(
      a.mesh.links().map(({node, admitted, path}) => ({node, admitted, path})),
      [{node: b.mesh.self, admitted: true, path: 'direct'}],
    );
    await b.mesh[Symbol.asyncDispose]();
    await until('the link is reported gone', () => !a.links.has(b.mesh.self));
    t.deepEqual(a.mesh.links(), []);
  });
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
      policy: {placement: {kind: 'prefer', nodes: ['b', 'c']}, localRequired: true},
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

function failureContract(check: Check): void {
  check('cancelling reaches the run on the worker within 100 ms, before and after output', async (t, place) => {
    const [a, b] = await linkedPair(place);
    for (const phase of ['before', 'after']) {
      const stopped = Promise.withResolvers<number>();
      const held = leaseOf(async (_body, signal) => {
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
      } else await until('the offer arrives', () => b.offers.length > 0);
      const since = performance.now();
      cancel.abort();
      await fails(t, rest, 'CANCELLED');
      t.true((await stopped.promise) - since < 100);
      await until('the worker gets its slot back', () => held.disposed());
    }
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
async function* one(chunk: Uint8Array, end: Promise<void>): AsyncGenerator<Uint8Array> {
  yield chunk;
  await end;
  throw new Error('the run was stopped');
}

async function* pieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let offset = 0; offset < bytes.length; offset += size) yield bytes.subarray(offset, offset + size);
}

async function once(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await new Promise<void>(resolve => signal.addEventListener('abort', () => resolve()));
}

/** Waits until a number has not grown for a while. */
async function settles(value: () => number): Promise<void> {
  let before = -1;
  let calm = 0;
  await until('the worker stops', () => {
    calm = value() === before ? calm + 1 : 0;
    before = value();
    return calm >= 20;
  });
}
