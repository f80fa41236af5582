/** The machines and models of the simulation: what such things do, in round numbers (facts: routing §3.4). */

export interface ModelKind {
  readonly name: string;
  /** Memory with its KV cache, also its size on disk. */
  readonly gigabytes: number;
  /** Weights read for each token: less than all for a mixture of experts. */
  readonly activeGigabytes: number;
  /** Parameters used for each token, in billions. */
  readonly billions: number;
}

export const modelKinds: readonly ModelKind[] = [
  {name: 'small-2b', gigabytes: 1.8, activeGigabytes: 1.2, billions: 1.7},
  {name: 'common-8b', gigabytes: 6.5, activeGigabytes: 4.9, billions: 8},
  {name: 'middle-14b', gigabytes: 11, activeGigabytes: 9, billions: 14},
  {name: 'experts-30b', gigabytes: 20, activeGigabytes: 2.2, billions: 3.3},
  {name: 'large-70b', gigabytes: 44, activeGigabytes: 42, billions: 70},
];

/** How often each is asked for. */
export const popularity: readonly number[] = [0.2, 0.4, 0.15, 0.2, 0.05];

export interface NodeKind {
  readonly gigabytes: number;
  readonly memoryGigabytesPerSecond: number;
  /** Effective while reading prompts. */
  readonly teraflops: number;
  readonly diskGigabytesPerSecond: number;
  /** How much each further stream slows the others down. */
  readonly crowding: number;
  readonly slots: number;
}

const kinds = {
  desktop: kind(23, 900, 80, 3, 0.06, 4),
  spark: kind(110, 240, 50, 2.5, 0.1, 4),
  laptop: kind(30, 250, 9, 3, 0.25, 2),
  thinLaptop: kind(11, 90, 3, 2, 0.35, 2),
  office: kind(12, 38, 0.6, 0.5, 0.6, 1),
  old: kind(6, 45, 0.5, 1, 0.6, 1),
} as const;

function kind(
  gigabytes: number,
  memoryGigabytesPerSecond: number,
  teraflops: number,
  diskGigabytesPerSecond: number,
  crowding: number,
  slots: number,
): NodeKind {
  return {gigabytes, memoryGigabytesPerSecond, teraflops, diskGigabytesPerSecond, crowding, slots};
}

/** A machine, and how many of the models it has on disk, the smallest first. */
export interface Machine {
  readonly kind: NodeKind;
  readonly models: readonly number[];
}

const machine = (name: keyof typeof kinds, ...models: readonly number[]): Machine => ({kind: kinds[name], models});
const times = (count: number, one: Machine): readonly Machine[] => Array.from({length: count}, () => one);

const five: readonly Machine[] = [
  machine('desktop', 0, 1, 2, 3),
  machine('spark', 0, 1, 2, 3, 4),
  machine('laptop', 0, 1, 2, 3),
  machine('office', 0, 1),
  machine('old', 0),
];

const twenty: readonly Machine[] = [
  ...times(2, machine('desktop', 0, 1, 2, 3)),
  ...times(2, machine('spark', 0, 1, 2, 3, 4)),
  ...times(4, machine('laptop', 0, 1, 2, 3)),
  ...times(4, machine('thinLaptop', 0, 1, 2)),
  ...times(6, machine('office', 0, 1)),
  ...times(2, machine('old', 0)),
];

export type ClusterName = 'five' | 'ten' | 'twenty' | 'fifty';

export const clusters: Readonly<Record<ClusterName, readonly Machine[]>> = {
  five: five,
  ten: times(10, machine('laptop', 0, 1, 2, 3)),
  twenty: twenty,
  fifty: [...twenty, ...twenty, ...twenty.slice(0, 10)],
};

export function modelOf(index: number): ModelKind {
  const found = modelKinds[index];
  if (!found) throw new RangeError(`no model ${index}`);
  return found;
}

/** Tokens a second of one stream alone. */
export function decodeSpeed(node: NodeKind, model: ModelKind): number {
  return (0.75 * node.memoryGigabytesPerSecond) / model.activeGigabytes;
}

/** Prompt tokens a second of one prompt alone. */
export function prefillSpeed(node: NodeKind, model: ModelKind): number {
  return (node.teraflops * 1000) / (2 * model.billions);
}

export function loadSeconds(node: NodeKind, model: ModelKind): number {
  return 0.8 + model.gigabytes / node.diskGigabytesPerSecond;
}
