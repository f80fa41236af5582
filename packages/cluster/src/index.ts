/**
 * One node's part in the mesh: it announces this node, keeps what it hears of the others, dispatches the gateway's
 * requests and serves those of peers. It hides gossip, retries and leases behind `Cluster`, and knows mesh, engines
 * and models only as ports.
 */
export {joinCluster} from './join-cluster.ts';
export type {ClusterConfig, ClusterDeps} from './join-cluster.ts';
export {startJournal} from './start-journal.ts';
export type {JournalConfig} from './start-journal.ts';
