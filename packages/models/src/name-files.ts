import {basename, dirname, relative, sep} from 'node:path';
import type {FileGroup} from './group-shards.ts';
import {printableName, quantOf} from './model-names.ts';

/** What people call the models of a store, the canonical name first. */
export type Names = readonly [string, ...string[]];

/** A repository and how its revision is told from others; undefined for files that belong to none. */
export interface Repository {
  readonly name: string;
  /** Undefined for the revision that the name alone means. */
  readonly revision: string | undefined;
}

/**
 * Pure: names models after their repository and quantization, `org/repo:Q4_K_M`, as llama-server and Ollama do, where
 * that says which file is meant; else by their own name within it. The stem of the file stays a name as well (R67).
 */
export function nameByRepository(
  groups: readonly FileGroup[],
  repositoryOf: (group: FileGroup) => Repository | undefined,
): ReadonlyMap<FileGroup, Names> {
  const tags = new Map<string, number>();
  const tagged = groups.map(group => {
    const repository = repositoryOf(group);
    const tag = repository && `${repository.name}:${plainQuant(group.name) ?? group.name}`;
    const id = JSON.stringify([tag?.toLowerCase(), repository?.revision]);
    tags.set(id, (tags.get(id) ?? 0) + 1);
    return {group, repository, tag, id};
  });
  return new Map(
    tagged.map(({group, repository, tag, id}) => {
      if (repository === undefined || tag === undefined) return [group, [group.name]];
      const isClear = tags.get(id) === 1;
      const own = `${repository.name}:${group.name}`;
      const quant = quantOf(group.name);
      const names = isClear ? [tag, ...(quant === undefined ? [] : [`${repository.name}:${quant}`])] : [own];
      const revised = names.map(name => (repository.revision === undefined ? name : `${name}#${repository.revision}`));
      const [first = own, ...rest] = [...new Set(revised.map(printableName))];
      return [group, [first, ...rest, ...(repository.revision === undefined ? [group.name] : [])]];
    }),
  );
}

/** `UD-` says how it was made, not what it is; programs leave it out. */
function plainQuant(stem: string): string | undefined {
  return quantOf(stem)?.replace(/^UD-/u, '');
}

/** Names of the folders between the root and the file. */
export function foldersTo(root: string, path: string): readonly string[] {
  const between = relative(root, dirname(path));
  return between === '' ? [] : between.split(sep);
}

/** Hugging Face: `models--org--repo/snapshots/COMMIT/…`. */
export function hubRepository(
  root: string,
  path: string,
  mainCommits: ReadonlyMap<string, string>,
): Repository | undefined {
  const [folder, snapshots, commit] = foldersTo(root, path);
  if (folder === undefined || commit === undefined || snapshots !== 'snapshots') return undefined;
  const name = folder.replace(/^models--/u, '').replaceAll('--', '/');
  const main = mainCommits.get(folder);
  const isMain = main === undefined || main === commit;
  return {name, revision: isMain ? undefined : commit.slice(0, 8)};
}

/** LM Studio: `publisher/model/file.gguf`. */
export function publishedRepository(root: string, path: string): Repository | undefined {
  const [publisher, model, ...deeper] = foldersTo(root, path);
  if (publisher === undefined || model === undefined || deeper.length > 0) return undefined;
  return {name: `${publisher}/${model}`, revision: undefined};
}

/** The name of the file that a link in a content-addressed store leads to is the sha256 of its bytes. */
export function hashInLink(target: string | undefined): string | undefined {
  const [, hash] = /^(?:sha256-)?([0-9a-f]{64})$/u.exec(basename(target ?? '')) ?? [];
  return hash;
}
