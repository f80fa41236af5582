/** What the mesh contract is written with: nodes that note everything, leases and bodies that can be counted. */
import type {ExecutionContext} from 'ava';
import {Fault, newRequestId, toDigest} from '@hearsay/core';
import type {AgedRecord, Digest, FaultCode, Lease, Link, Mesh, MeshHandlers, NodeId} from '@hearsay/core';
import type {ControlAnswer, ControlRequest, SignedRecord, WorkRequest, WorkResponse} from '@hearsay/core';
import {until} from '../support/until.ts';

/** One implementation of the mesh: makes nodes that can meet, and takes them down again. */
export interface MeshPlace extends AsyncDisposable {
  mesh(nodeName: string, meshName?: string): Promise<Mesh>;
}

/** Adds one test of the contract. */
export type Check = (title: string, run: (t: ExecutionContext, place: MeshPlace) => Promise<void>) => void;

/** What one node of a test saw, and what it answers. */
export interface Seen {
  readonly mesh: Mesh;
  readonly judged: AgedRecord[];
  readonly links: Map<NodeId, Link>;
  readonly offers: WorkRequest[];
  /** It was told that it belongs elsewhere now. */
  moved: () => void;
  newest: readonly AgedRecord[];
  offer: MeshHandlers['offer'];
  control: (request: ControlRequest, from: NodeId) => Promise<ControlAnswer>;
}

const digest: Digest = toDigest(`sha256:${'ab'.repeat(32)}`);
export const never: AbortSignal = new AbortController().signal;

export function workRequest(changes: Partial<WorkRequest> = {}): WorkRequest {
  return {
    request: newRequestId({next: () => 0, bytes: length => new Uint8Array(length).fill(1)}),
    attempt: 1,
    hop: 0,
    digests: [digest],
    endpoint: '/v1/chat/completions',
    needs: ['chat'],
    policy: {placement: {kind: 'auto'}, exclude: [], localRequired: true},
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
    lease: {kind: 'accepted', digest, run, [Symbol.asyncDispose]: dispose},
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
    moved: () => undefined,
    newest: [],
    offer: async () => ({kind: 'refused', code: 'broken', message: 'no offer was expected'}),
    control: async () => ({kind: 'refused', message: 'no wish was expected'}),
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
    control: (request, from) => seen.control(request, from),
    moved: () => seen.moved(),
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

export async function* chunks(...texts: string[]): AsyncGenerator<Uint8Array> {
  for (const each of texts) yield text(each);
}

export function text(value: string): Uint8Array {
  return new TextEncoder().encode(value);
}

export async function readAll(body: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const part of body) parts.push(part);
  return new Uint8Array(Buffer.concat(parts));
}

export async function fails(
  t: ExecutionContext,
  work: Promise<unknown>,
  code: FaultCode = 'PEER_FAILED',
): Promise<void> {
  const error = await t.throwsAsync(work, {instanceOf: Fault});
  t.is(error.code, code, error.message);
}

/** Every implementation of the mesh passes these. */

export async function* one(chunk: Uint8Array, end: Promise<void>): AsyncGenerator<Uint8Array> {
  yield chunk;
  await end;
  throw new Error('the run was stopped');
}

export async function* pieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let offset = 0; offset < bytes.length; offset += size) yield bytes.subarray(offset, offset + size);
}

export async function once(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await new Promise<void>(resolve => signal.addEventListener('abort', () => resolve()));
}

/** Waits until a number has not grown for a while. */
export async function settles(value: () => number): Promise<void> {
  let before = -1;
  let calm = 0;
  await until('the worker stops', () => {
    calm = value() === before ? calm + 1 : 0;
    before = value();
    return calm >= 20;
  });
}
