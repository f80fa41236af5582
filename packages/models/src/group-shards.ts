import {basename, dirname} from 'node:path';
import type {FileStamp} from './file-stamp.ts';
import {modelNameOf, parseShardName} from './model-names.ts';

/** The files of one model, as far as they are here. */
export interface FileGroup {
  readonly name: string;
  /** In the order of the shards. */
  readonly files: readonly [FileStamp, ...FileStamp[]];
  /** How many files the names promise. */
  readonly count: number;
  /** Numbers of the shards that are not here, counted from 1. */
  readonly missing: readonly number[];
}

/** Most missing shards that a message lists by number; more would fill the screen. */
const missingNamedMax = 3;

/** Pure: shards of one folder, stem and count are one model (R73); every other file is a model of its own. */
export function groupShards(files: readonly FileStamp[]): readonly FileGroup[] {
  const groups = new Map<string, Map<number, FileStamp>>();
  const counts = new Map<string, number>();
  for (const file of files) {
    const shard = parseShardName(basename(file.path));
    const id = shard ? JSON.stringify([dirname(file.path), shard.stem, shard.count]) : file.path;
    counts.set(id, shard?.count ?? 1);
    const group = groups.get(id) ?? new Map<number, FileStamp>();
    groups.set(id, group.set(shard?.index ?? 1, file));
  }
  return [...groups].flatMap(([id, group]) => orderGroup(group, counts.get(id) ?? 1));
}

/** Words for people about missing shards; undefined when all are here. */
export function describeMissing({missing, count}: FileGroup): string | undefined {
  if (missing.length === 0) return undefined;
  if (missing.length === 1) return `incomplete: shard ${missing[0]} of ${count} is missing`;
  const more = missing.length - missingNamedMax;
  const named = missing.slice(0, missingNamedMax).join(', ');
  return `incomplete: shards ${named}${more > 0 ? ` and ${more} more` : ''} of ${count} are missing`;
}

function orderGroup(group: ReadonlyMap<number, FileStamp>, count: number): readonly FileGroup[] {
  const [first, ...rest] = [...group].toSorted(([a], [b]) => a - b).map(([, file]) => file);
  if (!first) return [];
  const missing = Array.from({length: count}, (_, index) => index + 1).filter(index => !group.has(index));
  return [{name: modelNameOf(basename(first.path)), files: [first, ...rest], count, missing}];
}
