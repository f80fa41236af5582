/**
 * Knows which model files this machine has, and proves them by digest. It hides where models lie, what their headers
 * look like, how shards belong together, and how changes on disk are noticed.
 */
export {demoModelPath} from './demo-model.ts';
export {startModelStore} from './start-model-store.ts';
export type {ModelStoreConfig} from './start-model-store.ts';
export type {StoreKind, StorePlace} from './scan-place.ts';
