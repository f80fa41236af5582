import type {Peer, PeerStore} from '@libp2p/interface';

/** Peers of which it is remembered what they speak; more than any mesh of ours has nodes. */
const peersMax = 1024;

/**
 * For each stream libp2p notes in its peer store which protocol the peer speaks: it reads the peer, compares, and finds
 * that it has known it all along. From here on it is told once for each peer and protocol.
 */
export function mergeOnce(store: Pick<PeerStore, 'merge'>): void {
  const merge = store.merge.bind(store);
  const known = new Map<string, Map<string, Peer>>();
  store.merge = async (id, data, options) => {
    const [protocol, ...others] = data.protocols ?? [];
    const isStream = protocol !== undefined && others.length === 0 && Object.keys(data).length === 1;
    if (!isStream) return merge(id, data, options);
    const peer = id.toString();
    const told = known.get(peer)?.get(protocol);
    if (told) return told;
    const merged = await merge(id, data, options);
    if (known.size >= peersMax) known.clear();
    known.set(peer, new Map([...(known.get(peer) ?? []), [protocol, merged]]));
    return merged;
  };
}
