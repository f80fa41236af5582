import {
  applyInventory,
  applyRecord,
  asFault,
  decodeInventory,
  decodeRecord,
  doubtSelf,
  emptyView,
  expireNodes,
  isAlive,
  isRecordFromNewer,
  dropUnneeded,
  noDoubt,
  timeLimit,
  viewNodesMax,
} from '@hearsay/core';
import type {AgedRecord, Link, Mesh, NodeId, NodeRecord, Reach, SelfDoubt} from '@hearsay/core';
import type {SignedRecord, Verdict, View, ViewChange} from '@hearsay/core';
import {inventoryDigest} from './announcer.ts';
import type {ClusterDeps} from './join-cluster.ts';
import {OwnOffers} from './own-offers.ts';
import type {Offering} from './own-offers.ts';
import {waysOf, withExperience} from './reach.ts';

/** How often it is looked which nodes are past their life, and whether this node itself is late. */
const expiryCheckMs = 1000;

/** Longest wait for a peer's inventory. */
const inventoryTimeoutMs = 5000;

/** After a fetch that failed; doubles with each further one, until the next beat begins anew. */
const inventoryRetryMs = 200;
const inventoryAttemptsMax = 4;

/** After the first failed offer; doubles with each further one. */
const quarantineFirstMs = 500;
const quarantineMaxMs = 60_000;

/** The one owner of what this node has heard and of how it reaches the others. */
export interface ViewKeeper extends Disposable {
  /** While this node doubts itself, all others count as heard that much later. */
  readonly view: () => View;
  /** Changes whenever it may be another who has which models; a mere change of load leaves it. */
  readonly holdings: () => number;
  /** Peers that are connected and admitted right now. */
  readonly reach: () => ReadonlyMap<NodeId, Reach>;
  readonly links: () => ReadonlyMap<NodeId, Link>;
  readonly judge: (aged: AgedRecord) => Verdict;
  /** Everything held, with its age, for peers. */
  readonly held: () => readonly AgedRecord[];
  readonly linkChanged: (node: NodeId, link: Link | undefined) => void;
  /** Forgets everything heard, as if this node had just started. */
  readonly forget: () => void;
  /** A fresh record that came with an answer. */
  readonly heard: (record: SignedRecord | undefined) => void;
  /** From now until it is disposed an offer of this node to that one counts as its load. */
  readonly offering: (node: NodeId) => Offering;
  /** An offer could not be delivered or was not answered. */
  readonly failed: (node: NodeId, forMs?: number) => void;
  readonly succeeded: (node: NodeId) => void;
  /** Resolves at the next change of what is known. */
  readonly changed: (signal: AbortSignal) => Promise<void>;
}

export interface ViewKeeperDeps extends Pick<ClusterDeps, 'clock' | 'log'> {
  readonly mesh: Pick<Mesh, 'self' | 'inventory'>;
}

export function startViewKeeper(deps: ViewKeeperDeps): ViewKeeper {
  const {clock, log, mesh} = deps;
  const closing = new AbortController();
  const links = new Map<NodeId, Link>();
  const failures = new Map<NodeId, {count: number; forMs: number; untilMs: number}>();
  const fetching = new Map<NodeId, string>();
  const offers = new OwnOffers();
  let view = emptyView;
  let holdings = 0;
  let ways: ReadonlyMap<NodeId, Reach> | undefined;
  let isFullTold = false;
  let next = Promise.withResolvers<void>();
  let doubt: SelfDoubt = noDoubt;
  let trusted = {of: view, graceMs: 0, view};

  function setView(changed: View): void {
    view = changed;
    next.resolve();
    next = Promise.withResolvers();
  }

  function judge({record: signed, ageMs}: AgedRecord): Verdict {
    let record: NodeRecord;
    try {
      record = decodeRecord(signed);
    } catch (error) {
      log('debug', 'record rejected', {from: signed.node, error: asFault(error, 'PEER_FAILED').message});
      return isRecordFromNewer(signed) ? 'ignore' : 'reject';
    }
    if (record.node === mesh.self) return 'ignore';
    const {view: merged, change} = apply({record, signed, ageMs});
    if (change === 'full') noteFull(record.node);
    if (change === 'old' || change === 'full') return 'ignore';
    if (change !== 'updated' || isRenamed(record)) holdings += 1;
    if (record.kind === 'beat') offers.heard(record, view.nodes.get(record.node)?.beat);
    setView(merged);
    if (change !== 'updated') log('info', `node ${change}`, {node: record.node, ...nameOf(record)});
    fetchInventory(record.node);
    return 'accept';
  }

  function isRenamed(record: NodeRecord): boolean {
    return record.kind === 'beat' && view.nodes.get(record.node)?.beat.name !== record.name;
  }

  /** Who is connected is always met, however many others are only heard of. */
  function apply(heard: Parameters<typeof applyRecord>[1]): ViewChange {
    const nowMs = clock.monotonicMs();
    const isLinked = (node: NodeId): boolean => links.get(node)?.admitted === true;
    const first = applyRecord(view, heard, nowMs);
    if (first.change !== 'full' || !isLinked(heard.record.node)) return first;
    return applyRecord(dropUnneeded(view, isLinked), heard, nowMs);
  }

  /** One request finds out whether the node works again; until that is known the others go elsewhere. */
  function probe(node: NodeId): void {
    const failure = failures.get(node);
    if (failure) failures.set(node, {...failure, untilMs: clock.monotonicMs() + failure.forMs});
  }

  function offering(node: NodeId): Offering {
    probe(node);
    return offers.begin(node, () => view.nodes.get(node)?.beat.loadSeq ?? 0);
  }

  function noteFull(node: NodeId): void {
    if (!isFullTold)
      log('warn', `there are more than ${viewNodesMax} nodes; what is said by others is left out`, {node});
    isFullTold = true;
  }

  /** Fetches when the beat names another inventory than the one held; one at a time per node. */
  function fetchInventory(node: NodeId): void {
    const known = view.nodes.get(node);
    if (!known || !links.get(node)?.admitted || known.inventory?.digest === known.beat.inventory) return;
    if (fetching.has(node)) return;
    fetching.set(node, known.beat.inventory);
    void fetchUntilDone(node);
  }

  /** A peer that has not admitted this node yet gives nothing, but a moment later it does; its next beat is far. */
  async function fetchUntilDone(node: NodeId): Promise<void> {
    for (let attempt = 0; attempt < inventoryAttemptsMax; attempt += 1) {
      const done = await fetch(node);
      if (done || closing.signal.aborted) break;
      await clock.sleep(inventoryRetryMs * 2 ** attempt, closing.signal).catch(() => undefined);
      if (closing.signal.aborted || links.get(node)?.admitted !== true) break;
    }
    const {inventory} = view.nodes.get(node)?.beat ?? {};
    const asked = fetching.get(node);
    fetching.delete(node);
    if (inventory !== asked) fetchInventory(node); // it changed while it was fetched
  }

  /** True when the inventory is here. */
  async function fetch(node: NodeId): Promise<boolean> {
    using limit = timeLimit(clock, inventoryTimeoutMs, 'an inventory', closing.signal);
    try {
      const bytes = await mesh.inventory(node, limit.signal);
      const digest = inventoryDigest(bytes);
      holdings += 1;
      setView(applyInventory(view, node, {digest, inventory: decodeInventory(bytes)}));
      return true;
    } catch (error) {
      if (closing.signal.aborted) return false;
      log('debug', 'could not fetch an inventory; it is tried again', {node, error: String(error)});
      return false;
    }
  }

  function linkChanged(node: NodeId, link: Link | undefined): void {
    const before = links.get(node);
    if (link) links.set(node, link);
    else links.delete(node);
    if (!link) offers.forget(node);
    ways = undefined;
    if (link?.admitted !== before?.admitted) holdings += 1;
    if (link?.admitted && !before?.admitted) {
      failures.delete(node); // direct contact ends the quarantine
      fetchInventory(node);
    }
    setView(view);
  }

  function failed(node: NodeId, atLeastMs = 0): void {
    const count = (failures.get(node)?.count ?? 0) + 1;
    const forMs = Math.max(atLeastMs, Math.min(quarantineMaxMs, quarantineFirstMs * 2 ** (count - 1)));
    failures.set(node, {count, forMs, untilMs: clock.monotonicMs() + forMs});
    log('warn', 'node does not answer; leaving it alone for a while', {node, forMs});
  }

  let timer: Disposable;
  let lookedMs = clock.monotonicMs();
  const look = (): void => {
    const nowMs = clock.monotonicMs();
    const known = [...view.nodes.values()];
    doubt = doubtSelf(doubt, {
      nowMs,
      lateMs: nowMs - lookedMs - expiryCheckMs,
      others: known.length,
      silent: known.filter(each => !isAlive(each, nowMs)).length,
    });
    lookedMs = nowMs;
    const {view: rest, expired} = expireNodes(view, nowMs - doubt.graceMs);
    if (expired.length > 0) holdings += 1;
    if (expired.length > 0) setView(rest);
    for (const node of expired) log('info', 'node expired', {node});
    timer = clock.after(expiryCheckMs, look);
  };
  timer = clock.after(expiryCheckMs, look);

  /** What is passed on to others keeps its true age. */
  function trustedView(): View {
    if (doubt.graceMs === 0) return view;
    if (trusted.of !== view || trusted.graceMs !== doubt.graceMs) {
      trusted = {of: view, graceMs: doubt.graceMs, view: withGrace(view, doubt.graceMs)};
    }
    return trusted.view;
  }

  return {
    view: trustedView,
    holdings: () => holdings,
    links: () => links,
    reach() {
      ways ??= waysOf(links);
      return withExperience(ways, mesh.self, {failures, offers: offers.byNode});
    },
    judge,
    heard(record) {
      if (record && record.node !== mesh.self) judge({record, ageMs: 0});
    },
    offering,
    held: () => heldRecords(view, clock.monotonicMs()),
    linkChanged,
    forget() {
      holdings += 1;
      setView(emptyView);
    },
    failed,
    succeeded: node => void failures.delete(node),
    async changed(signal) {
      const aborted = Promise.withResolvers<void>();
      const onAbort = (): void => aborted.resolve();
      signal.addEventListener('abort', onAbort, {once: true});
      await Promise.race([next.promise, aborted.promise]);
      signal.removeEventListener('abort', onAbort);
    },
    [Symbol.dispose]() {
      closing.abort();
      timer[Symbol.dispose]();
    },
  };
}

function withGrace(view: View, graceMs: number): View {
  const nodes = [...view.nodes].map(([id, known]) => [id, {...known, madeAtMs: known.madeAtMs + graceMs}] as const);
  return {...view, nodes: new Map(nodes)};
}

function heldRecords(view: View, nowMs: number): readonly AgedRecord[] {
  return [...view.nodes.values()].map(({signed, madeAtMs}: {signed: SignedRecord; madeAtMs: number}) => ({
    record: signed,
    ageMs: nowMs - madeAtMs,
  }));
}

function nameOf(record: NodeRecord): {name?: string} {
  return record.kind === 'beat' ? {name: record.name} : {};
}
