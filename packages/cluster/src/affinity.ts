import type {Beat, Digest, EngineBeat, NodeId, Sketch, View} from '@hearsay/core';
import type {PrefixChain} from './prefix-chain.ts';

/** Hashes remembered over all nodes: some thousand conversations, a few megabytes. */
const entriesMax = 100_000;

/** Sessions that clients named; each is forgotten after the time below without a request. */
const sessionsMax = 4000;
const sessionMs = 10 * 60_000;

/** An engine keeps as many conversations as it has slots; the last requests it got are most likely those. */
const turnsPerSlot = 2;

/** How much one answer moves the estimate of how much of what was expected was really found. */
const newShare = 0.2;

/** Hashes of message ends that a node tells of a model: as many as fit one record. */
const sketchHashesMax = 256;

/** Clocks of engines are told in whole seconds. */
const epochSlackMs = 1500;

interface Memory {
  readonly node: NodeId;
  readonly digest: Digest;
  readonly atMs: number;
  /** Number of the request among those that the node got of that model from here. */
  readonly turn: number;
}

/** For each node the share of the prompt that it has probably read before. */
export type Hits = ReadonlyMap<NodeId, number>;

export interface Prompt {
  readonly chain: PrefixChain;
  readonly session: string | undefined;
  readonly digests: readonly Digest[];
}

/** A node as far as its memory of prompts is concerned. */
interface Reader {
  readonly engines: readonly EngineBeat[];
  /** When the engines were told of, on this node's clock. */
  readonly madeAtMs: number;
}

/**
 * Which node has read the beginning of a prompt before: what this node has sent where, what others tell of themselves,
 * and how well such expectations have come true. Affinity never decides alone: it only makes a prompt shorter.
 */
export class Affinity {
  readonly #memories = new Map<number, Memory[]>();
  readonly #turns = new Map<string, number>();
  readonly #sessions = new Map<
    string,
    {readonly node: NodeId; readonly digest: Digest; length: number; atMs: number}
  >();
  readonly #trust = new Map<NodeId, number>();
  readonly #served = new Map<Digest, Set<number>>();

  /** Before correction by `trust`. Only engines that have been loaded ever since can remember. */
  hits({chain, session, digests}: Prompt, self: Beat, view: View, nowMs: number): Hits {
    const found = new Map<NodeId, number>();
    const note = (node: NodeId, length: number): void => {
      const share = Math.min(length, chain.length) / Math.max(1, chain.length);
      if (share > (found.get(node) ?? 0)) found.set(node, share);
    };
    const readerOf = (node: NodeId): Reader | undefined => {
      const known = view.nodes.get(node);
      if (known) return {engines: known.beat.engines, madeAtMs: known.madeAtMs};
      return node === self.node ? {engines: self.engines, madeAtMs: nowMs} : undefined;
    };
    const known = session === undefined ? undefined : this.#sessions.get(session);
    if (known && nowMs - known.atMs < sessionMs && digests.includes(known.digest)) {
      if (remembers(readerOf(known.node), known.digest, known.atMs)) note(known.node, known.length);
    }
    this.#fromMemories(chain, digests, readerOf, note);
    const fromSketch = (node: NodeId, engines: readonly EngineBeat[], prompts: Sketch['prompts']): void => {
      for (const digest of digests) {
        const ends = prompts.get(digest);
        if (ends && engines.some(engine => engine.digest === digest && engine.readiness === 'ready')) {
          note(node, sharedLength(chain, ends));
        }
      }
    };
    fromSketch(self.node, self.engines, this.#served);
    for (const {beat, sketch} of view.nodes.values()) if (sketch) fromSketch(beat.node, beat.engines, sketch.prompts);
    return found;
  }

  /** How much of what was expected of a node has come true, 0…1. */
  trust(node: NodeId): number {
    return this.#trust.get(node) ?? 1;
  }

  #fromMemories(
    chain: PrefixChain,
    digests: readonly Digest[],
    readerOf: (node: NodeId) => Reader | undefined,
    note: (node: NodeId, length: number) => void,
  ): void {
    for (let index = chain.hashes.length - 1; index >= 0; index -= 1) {
      const memories = this.#memories.get(chain.hashes[index] ?? 0);
      if (!memories) continue;
      for (const {node, digest, atMs, turn} of memories) {
        if (!digests.includes(digest)) continue;
        const engine = remembers(readerOf(node), digest, atMs);
        if (engine && this.#turnsOf(node, digest) - turn < turnsPerSlot * engine.slots) {
          note(node, chain.lengths[index] ?? 0);
        }
      }
    }
  }

  /** The node has begun to answer, so that it has read the prompt. */
  sent(node: NodeId, digest: Digest, chain: PrefixChain, session: string | undefined, nowMs: number): void {
    const turn = this.#turnsOf(node, digest) + 1;
    this.#turns.set(`${node} ${digest}`, turn);
    const memory: Memory = {node, digest, atMs: nowMs, turn};
    for (const hash of chain.hashes) {
      const others = (this.#memories.get(hash) ?? []).filter(old => old.node !== node || old.digest !== digest);
      this.#memories.delete(hash); // to the end: the map is kept in order of age
      this.#memories.set(hash, [...others, memory]);
    }
    trim(this.#memories, entriesMax);
    if (session === undefined) return;
    this.#sessions.delete(session);
    this.#sessions.set(session, {node, digest, length: chain.length, atMs: nowMs});
    trim(this.#sessions, sessionsMax);
  }

  /** How much was found of what was expected, before correction; both in tokens. */
  learned(node: NodeId, expected: number, found: number): void {
    if (expected < 1) return;
    const before = this.trust(node);
    this.#trust.set(node, before + newShare * (Math.min(1, found / expected) - before));
  }

  /** This node's own engine has read a prompt whose messages end so. */
  served(digest: Digest, ends: readonly number[]): void {
    const set = this.#served.get(digest) ?? new Set();
    for (const end of ends) {
      set.delete(end);
      set.add(end);
    }
    for (const oldest of set) {
      if (set.size <= sketchHashesMax) break;
      set.delete(oldest);
    }
    this.#served.set(digest, set);
  }

  /** What this node would tell others of its loaded models. */
  sketch(): Sketch['prompts'] {
    return this.#served;
  }

  /** The model was unloaded here: what its engine had read is gone. */
  forget(digest: Digest): void {
    this.#served.delete(digest);
  }

  #turnsOf(node: NodeId, digest: Digest): number {
    return this.#turns.get(`${node} ${digest}`) ?? 0;
  }
}

/** The engine, if it has been loaded since then. */
function remembers(reader: Reader | undefined, digest: Digest, sinceMs: number): EngineBeat | undefined {
  const engine = reader?.engines.find(({digest: own, readiness}) => own === digest && readiness === 'ready');
  if (!reader || !engine) return undefined;
  return reader.madeAtMs - engine.ageSeconds * 1000 <= sinceMs + epochSlackMs ? engine : undefined;
}

/** Up to the last message end that the sketch holds. */
function sharedLength({ends, endIndexes, lengths}: PrefixChain, held: ReadonlySet<number>): number {
  for (let index = ends.length - 1; index >= 0; index -= 1) {
    if (held.has(ends[index] ?? -1)) return lengths[endIndexes[index] ?? 0] ?? 0;
  }
  return 0;
}

function trim(map: Map<unknown, unknown>, max: number): void {
  for (const oldest of map.keys()) {
    if (map.size <= max) return;
    map.delete(oldest);
  }
}
