import type {Peer, PeerStore} from '@libp2p/interface';
import type {Clock} from '@hearsay/core';

/** Peers of which it is remembered what they speak; more than any mesh of ours has nodes. */
const peersMax = 1024;

/** The peer store forgets who has not been noted for six hours, also those that are connected all the time. */
const againMs = 30 * 60_000;

interface Told {
  readonly peer: Peer;
  readonly atMs: number;
}

/**
 * For each stream libp2p notes in its peer store which protocol the peer speaks: it reads the peer, compares, and finds
 * that it has known it all along. From here on it is told once in a while for each peer and protocol.
 */
export function mergeOnce(store: Pick<PeerStore, 'merge' | 'delete'>, clock: Clock): void {
  const merge = store.merge.bind(store);
  const forget = store.delete.bind(store);
  const known = new Map<string, Map<string, Told>>();
  store.delete = async (id, options) => {
    known.delete(id.toString());
    return forget(id, options);
  };
  store.merge = async (id, data, options) => {
    const [protocol, ...others] = data.protocols ?? [];
    const isStream = protocol !== undefined && others.length === 0 && Object.keys(data).length === 1;
    if (!isStream) return merge(id, data, options);
    const name = id.toString();
    const told = known.get(name)?.get(protocol);
    const nowMs = clock.monotonicMs();
    if (told && nowMs - told.atMs < againMs) return told.peer;
    const peer = await merge(id, data, options);
    if (known.size >= peersMax) known.clear();
    const protocols = known.get(name) ?? new Map<string, Told>();
    known.set(name, protocols.set(protocol, {peer, atMs: nowMs}));
    return peer;
  };
}
