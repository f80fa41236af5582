import type {NodeId} from './ids.ts';
import {viewNodesMax} from './limits.ts';
import {isNewer} from './record.ts';
import type {Beat, Inventory, NodeRecord, SignedRecord, Sketch, Stamp} from './record.ts';

/** The newest that this node has heard of another. */
export interface KnownNode {
  readonly beat: Beat;
  /** As it came, for passing on. */
  readonly signed: SignedRecord;
  /** On this node's monotonic clock; earlier than the receipt by the time it spent on other nodes. */
  readonly madeAtMs: number;
  /** The last inventory fetched, and the digest it belongs to; may lag behind the beat for a moment. */
  readonly inventory: ({readonly digest: string} & Inventory) | undefined;
  /** What its engines have read lately; of the same boot as the beat. */
  readonly sketch?: Sketch;
}

/** Everything heard, as a value. `stamps` outlives the nodes, so that nothing old comes back (R36, R40). */
export interface View {
  readonly nodes: ReadonlyMap<NodeId, KnownNode>;
  readonly stamps: ReadonlyMap<NodeId, Stamp>;
}

export const emptyView: View = {nodes: new Map(), stamps: new Map()};

export interface ViewChange {
  readonly view: View;
  /** `old`: nothing new was learned, do not pass it on. */
  readonly change: 'joined' | 'updated' | 'left' | 'old' | 'full';
}

/**
 * Merges one record whose signature is proven. The newer stamp wins and nothing else counts, so the order of arrival
 * does not matter. `ageMs` is the time the record has spent on other nodes: a record past its life changes nothing,
 * and one that was passed around expires as if it had been heard directly (law 5).
 */
export function applyRecord(
  view: View,
  heard: {readonly record: NodeRecord; readonly signed: SignedRecord; readonly ageMs: number},
  nowMs: number,
): ViewChange {
  const {record, signed, ageMs} = heard;
  if (record.kind === 'sketch') return applySketch(view, record);
  const known = view.stamps.get(record.node);
  if (known && !isNewer(record, known)) return {view, change: 'old'};
  if (record.kind === 'beat' && ageMs > record.ttlMs) return {view, change: 'old'};
  const stamps = withStamp(view, record);
  if (stamps === undefined) return {view, change: 'full'};

  if (record.kind === 'leave') return {view: {nodes: without(view.nodes, record.node), stamps}, change: 'left'};

  const before = view.nodes.get(record.node);
  const nodes = withEntry(view.nodes, record.node, {
    beat: record,
    signed,
    madeAtMs: nowMs - ageMs,
    inventory: before?.inventory,
    ...(before?.sketch?.boot === record.boot ? {sketch: before.sketch} : {}),
  });
  return {view: {nodes, stamps}, change: before ? 'updated' : 'joined'};
}

/** A sketch says nothing of a node that is not known, and nothing of an earlier run of it. */
function applySketch(view: View, sketch: Sketch): ViewChange {
  const known = view.nodes.get(sketch.node);
  if (known?.beat.boot !== sketch.boot || (known.sketch && !isNewer(sketch, known.sketch)))
    return {view, change: 'old'};
  return {view: {...view, nodes: withEntry(view.nodes, sketch.node, {...known, sketch})}, change: 'updated'};
}

/**
 * A full view without one node that is not needed, or the same when all are: so that records of nodes which nobody ever
 * met cannot keep out one that is here.
 */
export function dropUnneeded(view: View, isNeeded: (node: NodeId) => boolean): View {
  const spare = [...view.nodes.keys()].find(node => !isNeeded(node));
  return spare === undefined ? view : {nodes: without(view.nodes, spare), stamps: without(view.stamps, spare)};
}

/** Stores a fetched inventory. Ignored when the node has gone meanwhile. */
export function applyInventory(view: View, node: NodeId, fetched: {digest: string; inventory: Inventory}): View {
  const known = view.nodes.get(node);
  if (!known) return view;
  const inventory = {...fetched.inventory, digest: fetched.digest};
  return {...view, nodes: withEntry(view.nodes, node, {...known, inventory})};
}

/** Forgets nodes whose last beat is past its life. Their stamps stay. */
export function expireNodes(view: View, nowMs: number): {readonly view: View; readonly expired: readonly NodeId[]} {
  const expired = [...view.nodes].filter(([, known]) => !isAlive(known, nowMs)).map(([node]) => node);
  if (expired.length === 0) return {view, expired};
  return {view: {...view, nodes: new Map([...view.nodes].filter(([node]) => !expired.includes(node)))}, expired};
}

/** True while the node's last beat is within its life, on this node's clock (S71). */
export function isAlive(known: KnownNode, nowMs: number): boolean {
  return nowMs - known.madeAtMs <= known.beat.ttlMs;
}

/**
 * The stamps with that of this record as the newest. When there are too many, that of the node which has been gone for
 * longest is forgotten: its last record is past its life by now, and so changes nothing any more. Undefined: nobody has
 * gone.
 */
function withStamp({nodes, stamps}: View, {node, boot, sequence}: NodeRecord): View['stamps'] | undefined {
  const copy = new Map(stamps);
  copy.delete(node); // moves it to the end
  copy.set(node, {boot, sequence});
  if (copy.size <= viewNodesMax) return copy;
  const gone = [...copy.keys()].find(each => each !== node && !nodes.has(each));
  return gone !== undefined && copy.delete(gone) ? copy : undefined;
}

function withEntry<K, V>(map: ReadonlyMap<K, V>, key: K, value: V): ReadonlyMap<K, V> {
  return new Map(map).set(key, value);
}

function without<K, V>(map: ReadonlyMap<K, V>, key: K): ReadonlyMap<K, V> {
  const copy = new Map(map);
  copy.delete(key);
  return copy;
}
