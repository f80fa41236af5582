import type {Candidate} from './candidates.ts';
import type {LearnedFacts} from './learned.ts';

/**
 * What a request costs on a node, term by term, in the order in which the time passes; then what it costs others, and
 * what the owner or experience says.
 */
export const costTerms = ['path', 'model', 'queue', 'prefill', 'decode', 'evict', 'copy', 'policy', 'risk'] as const;
export type CostTerm = (typeof costTerms)[number];

export type Source = 'measured' | 'guess';

/** One number in seconds, and what it is made of. */
export interface Cost {
  /** What the order goes by: the sum of the terms. */
  readonly seconds: number;
  /** Until the first byte of output. */
  readonly firstByteSeconds: number;
  readonly terms: Readonly<Record<CostTerm, number>>;
  readonly sources: Readonly<Record<CostTerm, Source>>;
}

/** What ranking needs to know of a request beside its candidates. */
export interface Asked {
  /** Spreads equal nodes over requests without chance. */
  readonly request: string;
  readonly spread: Spread;
  /** What is read as text. */
  readonly promptBytes: number;
  /** What is sent: with the pictures and recordings, which are read as fewer tokens. Absent: the prompt alone. */
  readonly bodyBytes?: number | undefined;
  /** The client's own limit on output tokens. */
  readonly maxTokens: number | undefined;
}

/** `off`: the seed rule to the letter. `auto`: what costs least, which is the seed rule until something is measured. */
export type Spread = 'off' | 'auto';

/** What is priced, whether it may be asked or not. */
type Priced = Omit<Candidate, 'exclusion'>;

/** Speeds that stand in for those of a node that nothing is known of, so that it differs from the others in nothing. */
export interface Reference {
  readonly prefillTps: number;
  readonly decodeTps: number;
  readonly outputTokens: number;
  readonly bytesPerToken: number;
  /** How measured speeds relate to what was guessed of the same machines. */
  readonly prefillScale: number;
  readonly decodeScale: number;
}

/** Used while nobody has measured anything: then they are equal for all and decide nothing. */
const referenceAtFirst: Reference = {
  prefillTps: 500,
  decodeTps: 30,
  outputTokens: 250,
  bytesPerToken: 4,
  prefillScale: 1,
  decodeScale: 1,
};

/** Writing is watched as it goes, so a second of it weighs less than one of waiting; 0.1…2 makes little difference. */
const decodeWeight = 0.5;

/** How much each further stream slows the others of a node down while they are written. */
const decodeSlowdown = 0.15;

/** How much each running stream slows the reading of a prompt down, and how far that goes. */
const prefillSlowdown = 0.1;
const prefillSlowdownMax = 0.5;

/** Own machine: a function call and a loopback connection. */
const selfSeconds = 0.0003;
const roundTripSecondsAtFirst = 0.005;
/** A gigabit network, and what a volunteered relay can be expected to carry. */
const bytesPerSecond = {direct: 100e6, relayed: 1e6} as const;
const relaySeconds = 0.2;

/** Loading from a disk nobody has measured: a SATA drive, and the start of the process. */
const loadBytesPerSecond = 0.5e9;
const loadStartSeconds = 0.8;
/** Bringing a model over a gigabit network. */
const pullBytesPerSecond = 0.1e9;
/** Until a node that is full of busy models has room. */
const noRoomSeconds = 10;

/** A second copy must gain at least this much, so that two nodes do not take turns in loading a model. */
const copySecondsMin = 0.5;
const copyShare = 0.1;

/** A machine on its battery is spared for so long when that is empty, and not at all when it is full. */
const batterySeconds = 3;
/** A machine that has become too hot goes about half as fast; what it has measured is from cooler days. */
const hotSlowdown = 2;

/** After a failed offer; doubles with each further one, as the quarantine does. */
const riskSecondsFirst = 0.5;
const riskSecondsMax = 60;

/** Pure: the mean of what the nodes have measured of this model. */
export function referenceOf(candidates: readonly Priced[]): Reference {
  const prefillTps = new Mean(referenceAtFirst.prefillTps);
  const decodeTps = new Mean(referenceAtFirst.decodeTps);
  const outputTokens = new Mean(referenceAtFirst.outputTokens);
  const bytesPerToken = new Mean(referenceAtFirst.bytesPerToken);
  const prefillScale = new Mean(referenceAtFirst.prefillScale);
  const decodeScale = new Mean(referenceAtFirst.decodeScale);
  for (const {guess, learned} of candidates) {
    if (learned === undefined) continue;
    prefillScale.add(ratio(learned.prefillTps, guess?.prefillTps));
    decodeScale.add(ratio(learned.decodeTps, guess?.decodeTps));
    prefillTps.add(learned.prefillTps);
    decodeTps.add(learned.decodeTps);
    outputTokens.add(learned.outputTokens);
    bytesPerToken.add(learned.bytesPerToken);
  }
  return {
    prefillTps: prefillTps.value,
    decodeTps: decodeTps.value,
    outputTokens: outputTokens.value,
    bytesPerToken: bytesPerToken.value,
    prefillScale: prefillScale.value,
    decodeScale: decodeScale.value,
  };
}

function ratio(measured: number | undefined, guessed: number | undefined): number | undefined {
  return measured === undefined || guessed === undefined ? undefined : measured / guessed;
}

class Mean {
  readonly #otherwise: number;
  #sum = 0;
  #count = 0;

  constructor(otherwise: number) {
    this.#otherwise = otherwise;
  }

  get value(): number {
    return this.#count === 0 ? this.#otherwise : this.#sum / this.#count;
  }

  add(value: number | undefined): void {
    if (value === undefined) return;
    this.#sum += value;
    this.#count += 1;
  }
}

/** Pure: what the request costs on this node. `isCopy`: other nodes have the model loaded already. */
export function costOf(candidate: Priced, asked: Asked, reference: Reference, isCopy: boolean): Cost {
  const terms = {...noCost};
  fillTerms(terms, candidate, asked, {reference, isCopy});
  const {path, model, queue, prefill} = terms;
  return {
    seconds: sum(terms),
    firstByteSeconds: path + model + queue + prefill,
    terms,
    sources: sourcesOf(candidate, candidate.learned),
  };
}

/** Pure: the same cost without what it is made of, which is needed of every node for every request. */
export function secondsOf(candidate: Priced, asked: Asked, reference: Reference, isCopy: boolean): number {
  fillTerms(scratch, candidate, asked, {reference, isCopy});
  return sum(scratch);
}

type Terms = {-readonly [Term in CostTerm]: number};

const noCost: Readonly<Terms> = {
  path: 0,
  model: 0,
  queue: 0,
  prefill: 0,
  decode: 0,
  evict: 0,
  copy: 0,
  policy: 0,
  risk: 0,
};
/** Filled and read within one call, so that a thousand candidates need no thousand objects. */
const scratch: Terms = {...noCost};

function sum({path, model, queue, prefill, decode, evict, copy, policy, risk}: Terms): number {
  return path + model + queue + prefill + decode + evict + copy + policy + risk;
}

interface Comparison {
  readonly reference: Reference;
  readonly isCopy: boolean;
}

function fillTerms(terms: Terms, candidate: Priced, asked: Asked, {reference, isCopy}: Comparison): void {
  const {failures, guess, learned, likely, state} = candidate;
  const isCold = state === 'stored' || state === 'absent';
  const running = candidate.running + candidate.ownOffers;

  const load = isCold ? loadSeconds(candidate) : 0;
  const bytesPerToken = learned?.bytesPerToken ?? reference.bytesPerToken;
  const prefillTps =
    learned?.prefillTps ??
    likely?.prefillTps ??
    scaled(guess?.prefillTps, reference.prefillScale) ??
    reference.prefillTps;
  const decodeTps =
    learned?.decodeTps ?? likely?.decodeTps ?? scaled(guess?.decodeTps, reference.decodeScale) ?? reference.decodeTps;
  const tokens = Math.max(0, asked.promptBytes - candidate.hitBytes) / bytesPerToken;
  const output = Math.min(asked.maxTokens ?? Infinity, learned?.outputTokens ?? reference.outputTokens);

  terms.path = pathSeconds(candidate, asked.bodyBytes ?? asked.promptBytes);
  terms.model = modelSeconds(candidate, load);
  terms.queue = queueSeconds(candidate, output / decodeTps);
  const slowdown = candidate.isHot === true ? hotSlowdown : 1;
  terms.prefill = (slowdown * tokens) / prefillTps / (1 - Math.min(prefillSlowdownMax, prefillSlowdown * running));
  terms.policy = candidate.batteryShare === undefined ? 0 : batterySeconds * (1 - candidate.batteryShare);
  terms.decode = slowdown * decodeWeight * (output / decodeTps) * (1 + decodeSlowdown * running);
  terms.evict = isCold ? candidate.evictSeconds : 0;
  terms.copy = isCold && isCopy ? Math.max(copySecondsMin, copyShare * load) : 0;
  terms.risk = failures === 0 ? 0 : Math.min(riskSecondsMax, riskSecondsFirst * 2 ** (failures - 1));
}

/** Machines are guessed beside each other: where one does half of what was guessed of it, so will the others. */
function scaled(guessed: number | undefined, scale: number): number | undefined {
  return guessed === undefined ? undefined : guessed * scale;
}

function pathSeconds({self, relayed, roundTripMs}: Priced, bytes: number): number {
  if (self) return selfSeconds;
  const roundTrip = roundTripMs === undefined ? roundTripSecondsAtFirst : roundTripMs / 1000;
  return relayed
    ? relaySeconds + roundTrip + bytes / bytesPerSecond.relayed
    : roundTrip + bytes / bytesPerSecond.direct;
}

/** Until the engine could begin. A loading one tells itself how long that will be. */
function modelSeconds({state, waitMs, ageMs, hasRoom}: Priced, load: number): number {
  if (state === 'ready') return 0;
  return state === 'loading' ? Math.max(0, waitMs - ageMs) / 1000 : load + (hasRoom ? 0 : noRoomSeconds);
}

function loadSeconds({guess, learned, likely, sizeBytes, state}: Priced): number {
  const pull = state === 'absent' ? sizeBytes / pullBytesPerSecond : 0;
  const load = learned?.loadMs ?? likely?.loadMs ?? guess?.loadMs;
  return pull + (load === undefined ? loadStartSeconds + sizeBytes / loadBytesPerSecond : load / 1000);
}

/**
 * Until a slot is free: what the owner itself said, less the time since, and this node's own offers that it had not
 * counted yet.
 */
function queueSeconds(candidate: Priced, decodeSeconds: number): number {
  const {slots, busy, queued, ownOffers, waitMs, ageMs, state, learned} = candidate;
  const said = state === 'ready' ? Math.max(0, waitMs - ageMs) / 1000 : 0;
  if (ownOffers === 0 || slots === 0) return said;
  const ahead = Math.max(0, busy + queued - slots + 1);
  const unseen = Math.max(0, busy + queued + ownOffers - slots + 1) - ahead;
  const hold = learned?.holdMs === undefined ? decodeSeconds : learned.holdMs / 1000;
  return said + (unseen * hold) / slots;
}

/** Which terms rest on measurements, as one of few shared objects: they are the same for most candidates. */
function sourcesOf({self, roundTripMs, state}: Priced, learned: LearnedFacts | undefined): Cost['sources'] {
  const bits =
    (self || roundTripMs !== undefined ? 1 : 0) +
    (state === 'ready' || learned?.loadMs !== undefined ? 2 : 0) +
    (learned?.holdMs === undefined ? 0 : 4) +
    (learned?.prefillTps === undefined ? 0 : 8) +
    (learned?.decodeTps === undefined ? 0 : 16);
  return allSources[bits] ?? noSources;
}

const noSources: Cost['sources'] = sourcesFrom(0);
const allSources: readonly Cost['sources'][] = Array.from({length: 32}, (_, bits) => sourcesFrom(bits));

function sourcesFrom(bits: number): Cost['sources'] {
  const source = (bit: number): Source => ((bits & bit) === 0 ? 'guess' : 'measured');
  return {
    path: source(1),
    model: source(2),
    queue: source(4),
    prefill: source(8),
    decode: source(16),
    evict: 'guess',
    copy: source(2),
    policy: 'measured',
    risk: 'measured',
  };
}
