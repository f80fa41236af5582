import type {Digest} from './ids.ts';
import type {LearnedFacts} from './learned.ts';
import type {ModelFacts} from './model.ts';
import type {HardwareFacts} from './record.ts';

/** What may be expected of a model that has not been measured. */
export type Likely = Pick<LearnedFacts, 'prefillTps' | 'decodeTps' | 'loadMs'>;

/** Finds a model of one node in no time, and guesses from the node's other models what is not known of this one. */
export interface InventoryIndex {
  find(digest: Digest): ModelFacts | undefined;
  /** By its other models; undefined when none of them has been measured. */
  likely(model: ModelFacts): Likely | undefined;
}

/** Of the bandwidth of a memory that much is reached, and a load takes so long before the first byte is read. */
const bandwidthShare = 0.75;
const loadStartMs = 800;

/** A list of models never changes, so its index is made once. */
const made = new WeakMap<readonly ModelFacts[], InventoryIndex>();

export function inventoryIndex(models: readonly ModelFacts[]): InventoryIndex {
  let index = made.get(models);
  if (index === undefined) {
    index = makeIndex(models);
    made.set(models, index);
  }
  return index;
}

function makeIndex(models: readonly ModelFacts[]): InventoryIndex {
  const byDigest = new Map(models.map(model => [model.digest, model]));
  const measured = models.filter(({learned}) => learned !== undefined);
  // What takes the time is reading weights and computing with them: bytes and parameters a second are much the same for
  // every model of a machine. A mixture of experts seems faster than it is, so the slowest counts.
  const prefill = slowest(measured, ({parameters, learned}) => product(learned?.prefillTps, parameters));
  const decode = slowest(measured, ({sizeBytes, learned}) => product(learned?.decodeTps, sizeBytes));
  const load = slowest(measured, ({sizeBytes, learned}) => learned?.loadMs && sizeBytes / learned.loadMs);
  return {
    find: digest => byDigest.get(digest),
    likely({parameters, sizeBytes}) {
      if (measured.length === 0) return undefined;
      return {
        prefillTps: prefill === undefined || parameters === 0 ? undefined : prefill / parameters,
        decodeTps: decode === undefined ? undefined : decode / sizeBytes,
        loadMs: load === undefined ? undefined : sizeBytes / load,
      };
    },
  };
}

/**
 * Pure: by the kind of machine alone. Each token written reads all weights once, and each token read takes two
 * operations for each parameter.
 */
export function guessFrom(hardware: HardwareFacts, {parameters, sizeBytes}: ModelFacts): Likely {
  return {
    prefillTps: parameters === 0 ? undefined : hardware.operationsPerSecond / (2 * parameters),
    decodeTps: (bandwidthShare * hardware.memoryBytesPerSecond) / sizeBytes,
    loadMs: loadStartMs + (1000 * sizeBytes) / hardware.diskBytesPerSecond,
  };
}

function product(a: number | undefined, b: number): number | undefined {
  return a === undefined ? undefined : a * b;
}

function slowest(models: readonly ModelFacts[], rate: (model: ModelFacts) => number | undefined): number | undefined {
  const rates = models.flatMap(model => rate(model) ?? []);
  return rates.length === 0 ? undefined : Math.min(...rates);
}
