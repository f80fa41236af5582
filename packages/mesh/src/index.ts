/**
 * Finds, admits and talks to other nodes. It hides libp2p: discovery, dialling, gossip and streams; what is outside
 * sees links, signed records and peers that look like any other worker.
 */
export {memoryNetwork} from './memory-mesh.ts';
export type {MemoryNetwork, MemoryNetworkOptions} from './memory-mesh.ts';
export {startMesh} from './start-mesh.ts';
export type {AdministeredMesh} from './start-mesh.ts';
export type {MeshConfig} from './mesh-parts.ts';
export {inspectNetworks} from './inspect-networks.ts';
export {probeMulticast} from './probe-multicast.ts';
export type {MulticastProbe} from './probe-multicast.ts';
