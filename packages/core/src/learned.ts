/**
 * What a node has measured of one model on itself; undefined what it has not. Part of its inventory, so that the
 * others can tell how long a request would take there.
 */
export interface LearnedFacts {
  /** Prompt tokens a second, of one request alone. */
  readonly prefillTps: number | undefined;
  /** Tokens written a second, of one request alone. */
  readonly decodeTps: number | undefined;
  readonly loadMs: number | undefined;
  /** How long a request keeps its slot. */
  readonly holdMs: number | undefined;
  readonly outputTokens: number | undefined;
  readonly bytesPerToken: number | undefined;
}

export type LearnedName = keyof LearnedFacts;

export const learnedNames: readonly LearnedName[] = [
  'prefillTps',
  'decodeTps',
  'loadMs',
  'holdMs',
  'outputTokens',
  'bytesPerToken',
];

export const nothingLearned: LearnedFacts = {
  prefillTps: undefined,
  decodeTps: undefined,
  loadMs: undefined,
  holdMs: undefined,
  outputTokens: undefined,
  bytesPerToken: undefined,
};

/** How much one measurement moves an average: some ten requests make a new one. */
const newShare = 0.2;

/**
 * What rises at once and falls slowly (Peak-EWMA). A request among many shows less speed than the node has alone, so
 * the highest speed is the true one for a while; and a load that was slow once had better be expected to be slow.
 */
const risesAtOnce: ReadonlySet<LearnedName> = new Set(['prefillTps', 'decodeTps', 'loadMs']);

/** Pure: adds one request's or one load's measurements to what was known. Nonsense is not learned. */
export function learn(known: LearnedFacts, sample: Partial<LearnedFacts>): LearnedFacts {
  const next = {...known};
  for (const name of learnedNames) {
    const value = sample[name];
    if (value === undefined || !Number.isFinite(value) || value <= 0) continue;
    next[name] = merge(name, known[name], value);
  }
  return next;
}

function merge(name: LearnedName, before: number | undefined, value: number): number {
  if (before === undefined) return value;
  return value > before && risesAtOnce.has(name) ? value : before + newShare * (value - before);
}

/** How far a fact may drift untold: an inventory that changed with every request would be fetched with every one. */
const driftMax = 0.15;

/** True when the others should be told: something new was learned, or something has changed by more than noise. */
export function isNews(told: LearnedFacts | undefined, known: LearnedFacts): boolean {
  return learnedNames.some(name => {
    const now = known[name];
    const before = told?.[name];
    if (now === undefined) return false;
    return before === undefined || Math.abs(now - before) > driftMax * before;
  });
}
