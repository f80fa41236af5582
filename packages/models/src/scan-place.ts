import {readlink} from 'node:fs/promises';
import {basename, join} from 'node:path';
import type {ModelPreset} from '@hearsay/core';
import type {FileDoor} from './file-door.ts';
import type {FileStamp} from './file-stamp.ts';
import {describeMissing, groupShards} from './group-shards.ts';
import type {FileGroup} from './group-shards.ts';
import {roleOf} from './model-names.ts';
import type {FileRole} from './model-names.ts';
import {foldersTo, hashInLink, hubRepository, nameByRepository, publishedRepository} from './name-files.ts';
import type {Names} from './name-files.ts';
import {pairProjectors} from './pair-projectors.ts';
import {readText} from './read-text.ts';
import {scanFolder} from './scan-folder.ts';
import type {FolderScan, ScanRules} from './scan-folder.ts';
import {ollamaScanner} from './scan-ollama.ts';

/** Somewhere models lie, and how they lie there. */
export interface StorePlace {
  readonly kind: StoreKind;
  /** Absolute. */
  readonly path: string;
}

/** `llama.cpp` is the flat cache of its older versions; newer ones share the Hugging Face cache. */
export type StoreKind = 'hearsay' | 'huggingface' | 'ollama' | 'lmstudio' | 'llama.cpp' | 'folder';

/** The files of one model as a store has them. */
export interface FoundGroup {
  readonly names: Names;
  /** Shards in order, then the projector. */
  readonly files: readonly [FileStamp, ...FileStamp[]];
  readonly projector: FileStamp | undefined;
  /** What no header can say: files are missing, or the model cannot stand alone. */
  readonly problem: string | undefined;
  /** The sha256 that the store names for each file; undefined where it names none. */
  readonly promised: readonly (string | undefined)[];
  readonly presets: readonly ModelPreset[];
  readonly demo: boolean;
}

export interface PlaceScan extends Omit<FolderScan, 'files'> {
  readonly groups: readonly FoundGroup[];
  /** Every file whose change matters. */
  readonly files: readonly FileStamp[];
}

export type PlaceScanner = (door: FileDoor, signal: AbortSignal) => Promise<PlaceScan>;

export function placeScanner({kind, path: root}: StorePlace): PlaceScanner {
  switch (kind) {
    case 'folder':
      return async (door, signal) => toPlaceScan(await scanFolder(root, door, signal));
    case 'llama.cpp':
      return async (door, signal) => toPlaceScan(await scanFolder(root, door, signal, {enters: () => false}));
    case 'lmstudio':
      return async (door, signal) =>
        toPlaceScan(await scanFolder(root, door, signal), groups =>
          nameByRepository(groups, ({files}) => publishedRepository(root, files[0].path)),
        );
    case 'huggingface':
      return (door, signal) => scanHub(root, door, signal);
    case 'hearsay':
      return (door, signal) => scanOwn(root, door, signal);
    case 'ollama':
      return ollamaScanner(root);
  }
}

const hubRules: ScanRules = {
  enters: ([repository = '', snapshots]) =>
    repository.startsWith('models--') && (snapshots === undefined || snapshots === 'snapshots'),
};

async function scanHub(root: string, door: FileDoor, signal: AbortSignal): Promise<PlaceScan> {
  const scan = await scanFolder(root, door, signal, hubRules);
  const folders = new Set(scan.files.map(({path}) => foldersTo(root, path)[0] ?? ''));
  const mainCommits = new Map<string, string>();
  for (const folder of folders) {
    const commit = await readText(join(root, folder, 'refs', 'main'), door);
    if (commit !== undefined) mainCommits.set(folder, commit.trim());
  }
  const promised = await readPromises(scan.files, door);
  return toPlaceScan(
    scan,
    groups => nameByRepository(groups, ({files}) => hubRepository(root, files[0].path, mainCommits)),
    promised,
  );
}

const ownRules: ScanRules = {enters: ([first]) => first !== 'blobs'};

/**
 * Our own store: `blobs/sha256-HEX`, and for each model a folder with links to them under the names that shards need.
 * The folders above say what the model is called: `models/org/repo/file.gguf`.
 */
async function scanOwn(root: string, door: FileDoor, signal: AbortSignal): Promise<PlaceScan> {
  const scan = await scanFolder(root, door, signal, ownRules);
  const promised = await readPromises(scan.files, door);
  return toPlaceScan(
    scan,
    groups => nameByRepository(groups, ({files}) => publishedRepository(root, files[0].path)),
    promised,
  );
}

/** Where a store keeps files under their hashes, the links to them say what the hash is. */
async function readPromises(files: readonly FileStamp[], door: FileDoor): Promise<ReadonlyMap<string, string>> {
  const promised = new Map<string, string>();
  for (const {path} of files) {
    const hash = hashInLink(await door.pass(() => readlink(path).catch(() => undefined)));
    if (hash !== undefined) promised.set(path, hash);
  }
  return promised;
}

function toPlaceScan(
  {files, folders, problem, cut}: FolderScan,
  nameGroups: (groups: readonly FileGroup[]) => ReadonlyMap<FileGroup, Names> = () => new Map(),
  promised: ReadonlyMap<string, string> = new Map(),
): PlaceScan {
  const all = groupShards(files);
  const roles = new Map(all.map(group => [group, roleOf(basename(group.files[0].path))]));
  const models = all.filter(group => roles.get(group) === 'model');
  const projectors = all.filter(group => roles.get(group) === 'projector');
  const [pairs, names] = [pairProjectors(models, projectors), nameGroups(models)];
  const taken = new Set([...pairs.values()].map(({path}) => path));
  const groups = all
    .filter(group => !taken.has(group.files[0].path))
    .map((group): FoundGroup => {
      const projector = pairs.get(group);
      const withProjector = [...group.files, ...(projector ? [projector] : [])] as const;
      const [first, ...rest] = withProjector;
      return {
        names: names.get(group) ?? [group.name],
        files: [first, ...rest],
        projector,
        problem: describeRole(roles.get(group)) ?? describeMissing(group),
        promised: withProjector.map(({path}) => promised.get(path)),
        presets: [],
        demo: false,
      };
    });
  return {groups, files, folders, problem, cut};
}

function describeRole(role: FileRole | undefined): string | undefined {
  switch (role) {
    case undefined:
    case 'model':
      return undefined;
    case 'projector':
      return 'it is a projector, which lets a model see or hear, and no model that it belongs to lies beside it';
    case 'draft':
      return 'it is a draft model, which only speeds up another model and cannot answer alone';
  }
}
