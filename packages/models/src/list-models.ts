import type {Digest, ModelFacts, ModelPreset, StoredModel} from '@hearsay/core';
import type {FileDoor} from './file-door.ts';
import type {FileStamp} from './file-stamp.ts';
import {modelDigest, unprovenDigest} from './hash-files.ts';
import type {Names} from './name-files.ts';

/**
 * What the headers of the files say, or why they cannot be used. `retry`: may get better though the files stay the
 * same.
 */
export type Description =
  | ({readonly kind: 'usable'} & HeaderFacts)
  | ({readonly kind: 'unusable'; readonly problem: string; readonly retry: boolean} & Partial<HeaderFacts>);

export type HeaderFacts = Pick<
  ModelFacts,
  'needBytes' | 'architecture' | 'quant' | 'parameters' | 'contextMax' | 'capabilities'
>;

/** The files of one model at one place on this machine, and what we know of them so far. */
export interface Holding {
  readonly key: string;
  readonly names: Names;
  readonly demo: boolean;
  /** All shards in order, then the projector. */
  readonly files: readonly [FileStamp, ...FileStamp[]];
  readonly projector: FileStamp | undefined;
  readonly presets: readonly ModelPreset[];
  /** The way to the files. */
  readonly door: FileDoor;
  /** What cannot be seen in any header: shards are missing, or somebody is still writing. */
  readonly problem: string | undefined;
  /** Undefined until the headers have been read; not listed before. */
  readonly description: Description | undefined;
  /** The sha256 of every file in order, read or promised by its store; undefined where it is not known yet. */
  readonly hashes: readonly (string | undefined)[];
}

/** Share of the bytes of a holding that are hashed, 0…1. */
export type Progress = (holding: Holding) => number;

export interface Listing {
  /** By name, then by path. */
  readonly models: readonly StoredModel[];
  /**
   * Every digest that may be asked for: proven ones, and the unproven form of each key. Models with a problem are not
   * here.
   */
  readonly byDigest: ReadonlyMap<Digest, StoredModel>;
}

/**
 * Pure: the list of models from what lies where. Holdings with equal bytes are one model with the names of all; two
 * names alike with different bytes stay two models, which the cluster shows as a conflict (law 6).
 */
export function listModels(holdings: Iterable<Holding>, progress: Progress): Listing {
  const groups = new Map<string, Holding[]>();
  for (const holding of [...holdings].toSorted(compareHoldings)) {
    if (!holding.description) continue;
    const id = problemOf(holding) === undefined ? digestOf(holding) : holding.key;
    const alike = groups.get(id);
    if (alike === undefined) groups.set(id, [holding]);
    else alike.push(holding);
  }
  const models: StoredModel[] = [];
  const byDigest = new Map<Digest, StoredModel>();
  for (const [first, ...others] of groups.values()) {
    if (!first) continue;
    const model = others.length === 0 ? toSingleModel(first, progress) : toModel(first, others, progress);
    models.push(model);
    if (model.problem !== undefined) continue;
    byDigest.set(model.digest, model);
    for (const {key} of [first, ...others]) byDigest.set(unprovenDigest(key), model);
  }
  return {models, byDigest};
}

export function problemOf({problem, description}: Holding): string | undefined {
  return problem ?? (description?.kind === 'unusable' ? description.problem : undefined);
}

const digests = new WeakMap<Holding, Digest>();

function digestOf(holding: Holding): Digest {
  const known = digests.get(holding) ?? computeDigest(holding);
  digests.set(holding, known);
  return known;
}

function computeDigest({key, hashes}: Holding): Digest {
  const known = hashes.filter(hash => hash !== undefined);
  return known.length === hashes.length ? modelDigest(known) : unprovenDigest(key);
}

/** A file that somebody chose goes before the toy, whose name it may share. */
function compareHoldings(a: Holding, b: Holding): number {
  if (a.demo !== b.demo) return a.demo ? 1 : -1;
  if (a.names[0] !== b.names[0]) return a.names[0] < b.names[0] ? -1 : 1;
  return a.files[0].path < b.files[0].path ? -1 : 1;
}

/** Holdings never change, so what was said of one stays true: lists of ten thousand are made anew at every change. */
const singles = new WeakMap<Holding, StoredModel>();

function toSingleModel(holding: Holding, progress: Progress): StoredModel {
  const known = singles.get(holding);
  if (known !== undefined) return known;
  const model = toModel(holding, [], progress);
  if (model.hashed === undefined) singles.set(holding, model);
  return model;
}

function toModel(first: Holding, others: readonly Holding[], progress: Progress): StoredModel {
  const {key, files, description} = first;
  const [firstFile, ...restFiles] = files;
  const problem = problemOf(first);
  const digest = problem === undefined ? digestOf(first) : unprovenDigest(key);
  const [name, ...moreNames] = first.names;
  const otherNames = new Set([...moreNames, ...others.flatMap(({names}) => names)]);
  otherNames.delete(name);
  return {
    key,
    digest,
    names: [name, ...otherNames],
    sizeBytes: files.reduce((total, {sizeBytes}) => total + sizeBytes, 0),
    needBytes: description?.needBytes ?? 0,
    architecture: description?.architecture ?? '',
    quant: description?.quant ?? '',
    parameters: description?.parameters ?? 0,
    contextMax: description?.contextMax ?? 0,
    capabilities: description?.capabilities ?? [],
    demo: [first, ...others].every(({demo}) => demo),
    files: [firstFile.path, ...restFiles.map(({path}) => path)],
    projector: first.projector?.path,
    presets: [first, ...others].flatMap(({presets}) => presets),
    problem,
    hashed: digest.startsWith('unproven:') ? progress(first) : undefined,
    modifiedWallMs: Math.max(...files.map(({mtimeMs}) => mtimeMs)),
  };
}
