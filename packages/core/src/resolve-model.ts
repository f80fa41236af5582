import type {Digest} from './ids.ts';
import type {ModelFacts} from './model.ts';

/** A model name with where it came from, for resolving. */
export interface NamedModel extends Pick<ModelFacts, 'digest' | 'names' | 'demo'> {
  /** Stored on this node: preferred when one name means two models. */
  readonly local: boolean;
  /** How many nodes store it. */
  readonly holders: number;
}

export type Resolution =
  | {readonly kind: 'found'; readonly digests: readonly Digest[]; readonly name: string}
  | {readonly kind: 'unknown'; readonly close: readonly string[]}
  | {readonly kind: 'unnamed'; readonly known: readonly string[]};

/** Most names offered as "did you mean". */
const closeNamesMax = 3;

/**
 * Pure: what a client means by a name. Names are compared without case; `name@sha256:…`, a whole digest and its first
 * twelve digits select one model. One name with two contents goes to this node's own, else to what most nodes hold
 * (law 6). No name at all means the only model there is.
 */
export function resolveModel(asked: string, models: readonly NamedModel[]): Resolution {
  const wanted = asked.trim().toLowerCase();
  if (wanted === '') return resolveDefault(models);
  const [name, digest] = splitDigest(wanted);
  const matching = models.filter(
    model => (name === '' || hasName(model, name)) && (digest === undefined || matchesDigest(model.digest, digest)),
  );
  const byDigest = matching.length > 0 ? matching : models.filter(model => matchesDigest(model.digest, wanted));
  const best = byDigest.toSorted(compareModels)[0];
  if (best) return {kind: 'found', digests: [best.digest], name: best.names[0]};
  return {kind: 'unknown', close: closeNames(wanted, models)};
}

/** The models that people are shown: the toy only while nothing else is known. */
export function withoutDemo<T extends {readonly demo: boolean}>(models: readonly T[]): readonly T[] {
  const real = models.filter(({demo}) => !demo);
  return real.length > 0 ? real : models;
}

function resolveDefault(models: readonly NamedModel[]): Resolution {
  const offered = withoutDemo(models);
  const digests = new Set(offered.map(({digest}) => digest));
  const only = offered[0];
  if (only && digests.size === 1) return {kind: 'found', digests: [only.digest], name: only.names[0]};
  return {kind: 'unnamed', known: offered.map(({names}) => names[0]).slice(0, 20)};
}

function splitDigest(wanted: string): readonly [string, string | undefined] {
  const at = wanted.lastIndexOf('@sha256:');
  return at >= 0 ? [wanted.slice(0, at), wanted.slice(at + 1)] : [wanted, undefined];
}

/** Whether a text in lower case is one of the model's names, its digest, or enough of its digest. */
export function isModelNamed(model: NamedModel, wanted: string): boolean {
  return hasName(model, wanted) || matchesDigest(model.digest, wanted);
}

function hasName({names}: NamedModel, wanted: string): boolean {
  return names.some(name => name.toLowerCase() === wanted || `${name.toLowerCase()}:latest` === wanted);
}

/** A whole digest with or without its prefix, or at least the twelve digits that lists show. */
function matchesDigest(digest: Digest, wanted: string): boolean {
  const hash = wanted.startsWith('sha256:') ? wanted.slice(7) : wanted;
  return /^[0-9a-f]{12,64}$/u.test(hash) && digest.startsWith(`sha256:${hash}`);
}

/** This node's own first, then what most nodes hold. */
export function compareModels(a: NamedModel, b: NamedModel): number {
  if (a.local !== b.local) return a.local ? -1 : 1;
  if (a.holders !== b.holders) return b.holders - a.holders;
  return a.digest < b.digest ? -1 : 1;
}

/** Names within a few typing errors, or that one contains the other; best first. */
function closeNames(wanted: string, models: readonly NamedModel[]): readonly string[] {
  const names = [...new Set(models.flatMap(({names: all}) => all))];
  return names
    .map(name => ({name, distance: nameDistance(wanted, name.toLowerCase())}))
    .filter(({name, distance}) => distance <= Math.max(2, name.length / 3))
    .toSorted((a, b) => a.distance - b.distance)
    .slice(0, closeNamesMax)
    .map(({name}) => name);
}

function nameDistance(a: string, b: string): number {
  if (a.length >= 3 && (b.includes(a) || a.includes(b))) return 1;
  return editDistance(a.slice(0, 100), b.slice(0, 100));
}

/** Levenshtein distance; also used for unknown keys in the config file. */
export function editDistance(a: string, b: string): number {
  let row = Array.from({length: b.length + 1}, (_, index) => index);
  for (const [i, left] of Array.from(a).entries()) {
    const next = [i + 1];
    for (const [j, right] of Array.from(b).entries()) {
      next.push(Math.min((row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1, (row[j] ?? 0) + (left === right ? 0 : 1)));
    }
    row = next;
  }
  return row[Array.from(b).length] ?? 0;
}
