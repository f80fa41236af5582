import type {ModelReport} from './cluster-port.ts';
import type {Digest} from './ids.ts';
import type {ModelFacts} from './model.ts';

/** What a model can be called by. */
type Named = Pick<ModelFacts, 'digest' | 'names'>;

/** A model name with where it came from, for resolving. */
export interface NamedModel extends Named, Pick<ModelFacts, 'demo'> {
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

/** Most names compared letter by letter for that: some milliseconds of work. */
const comparedMax = 500;

/** A model as names are resolved with. */
export function toNamedModel({digest, name, names, demo, nodes}: ModelReport): NamedModel {
  const others = names.filter(other => other !== name);
  return {digest, names: [name, ...others], demo, local: nodes.some(({local}) => local), holders: nodes.length};
}

/**
 * Pure: what a client means by a name. Names are compared without case, without the tag `latest` and without the place
 * where everybody has models from; `name@sha256:…`, a whole digest and its first twelve digits select one model. One
 * name with two contents goes to the fittest for what is asked, of these to this node's own, else to what most nodes
 * hold (law 6). No name at all means the only model there is. A name that could be several models is unknown, and all
 * that it could be are close.
 */
export function resolveModel<Model extends NamedModel>(
  asked: string,
  models: readonly Model[],
  fitness: (model: Model) => number = () => 0,
): Resolution {
  const [name, digest] = splitDigest(normalize(asked));
  if (name === '' && digest === undefined) return resolveDefault(models);
  const allowed = digest === undefined ? models : models.filter(model => matchesDigest(model.digest, digest));
  const matching = name === '' ? allowed : allowed.filter(model => formsOf(model).includes(name));
  const byDigest = matching.length > 0 ? matching : models.filter(model => matchesDigest(model.digest, name));
  const best = byDigest.toSorted((a, b) => fitness(b) - fitness(a) || compareModels(a, b))[0];
  if (best) return {kind: 'found', digests: [best.digest], name: best.names[0]};
  return resolveBeginning(name, allowed) ?? {kind: 'unknown', close: closeNames(name, models)};
}

/** `repo:Q8` means `repo:Q8_0` while it cannot mean anything else (R67). */
function resolveBeginning(wanted: string, models: readonly NamedModel[]): Resolution | undefined {
  const tag = wanted.slice(wanted.lastIndexOf('/')).split(':')[1];
  if (tag === undefined || tag === '') return undefined;
  const begun = models.filter(model => formsOf(model).some(form => form.startsWith(`${wanted}_`)));
  const [first] = begun.toSorted(compareModels);
  if (first === undefined) return undefined;
  if (begun.every(({digest}) => digest === first.digest)) {
    return {kind: 'found', digests: [first.digest], name: first.names[0]};
  }
  return {kind: 'unknown', close: begun.map(({names}) => names[0]).slice(0, closeNamesMax)};
}

/** Lists of ten thousand names are searched at every request, and are the same for many. */
const forms = new WeakMap<Named, readonly string[]>();

function formsOf(model: Named): readonly string[] {
  const known = forms.get(model) ?? model.names.map(normalize);
  forms.set(model, known);
  return known;
}

/** Whether somebody may mean this model by the text: one of its names, its digest, or enough of its digest. */
export function isModelNamed(model: Named, text: string): boolean {
  const wanted = normalize(text);
  return formsOf(model).includes(wanted) || matchesDigest(model.digest, wanted);
}

/** The form in which names are compared; what a Mac writes and what people type must be the same. */
function normalize(name: string): string {
  return name
    .normalize('NFC')
    .trim()
    .toLowerCase()
    .replace(/^(?:https?:\/\/)?(?:(?:hf\.co|huggingface\.co)\/|registry\.ollama\.ai\/(?:library\/)?|library\/)/u, '')
    .replace(/:latest(?=@|$)/u, '');
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

/** Names within a few typing errors, also of their beginnings, or that one contains the other; best first. */
function closeNames(wanted: string, models: readonly NamedModel[]): readonly string[] {
  const distances = new Map<string, number>();
  let compared = 0;
  for (const model of models) {
    for (const [index, form] of formsOf(model).entries()) {
      const name = model.names[index] ?? form;
      const errorsMax = Math.max(2, form.length / 3);
      if (form.length >= 3 && wanted.length >= 3 && (form.includes(wanted) || wanted.includes(form))) {
        distances.set(name, 1);
      } else if (Math.abs(form.length - wanted.length) <= errorsMax && compared < comparedMax) {
        compared += 1;
        const distance = editDistance(wanted.slice(0, 100), form.slice(0, 100));
        if (distance <= errorsMax) distances.set(name, distance);
      } else if (form.length > wanted.length && wanted.length >= 4 && compared < comparedMax) {
        compared += 1;
        const distance = editDistance(wanted.slice(0, 100), form.slice(0, wanted.length).slice(0, 100));
        if (distance <= wanted.length / 4) distances.set(name, distance + 0.5); // a typing error in its beginning
      }
    }
  }
  return [...distances]
    .toSorted(([, a], [, b]) => a - b)
    .slice(0, closeNamesMax)
    .map(([name]) => name);
}

/**
 * How many letters must be added, left out, replaced or swapped with their neighbour; also used for unknown keys in the
 * config file.
 */
export function editDistance(a: string, b: string): number {
  const [from, to] = [Array.from(a), Array.from(b)];
  let before: readonly number[] = [];
  let row: readonly number[] = Array.from({length: to.length + 1}, (_, index) => index);
  for (const [i, left] of from.entries()) {
    const next = [i + 1];
    for (const [j, right] of to.entries()) {
      const isSwapped = left === to[j - 1] && right === from[i - 1];
      next.push(
        Math.min(
          (row[j + 1] ?? 0) + 1,
          (next[j] ?? 0) + 1,
          (row[j] ?? 0) + (left === right ? 0 : 1),
          isSwapped ? (before[j - 1] ?? 0) + 1 : Infinity,
        ),
      );
    }
    [before, row] = [row, next];
  }
  return row.at(-1) ?? 0;
}
