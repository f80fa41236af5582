import {basename, dirname} from 'node:path';
import type {FileStamp} from './file-stamp.ts';
import type {FileGroup} from './group-shards.ts';
import {projectorClues, quantOf, withoutQuant} from './model-names.ts';

/** Precision of projectors, the most wanted first: they are small, and every engine reads half precision. */
const quantOrder = ['F16', 'BF16', 'Q8_0', 'F32'];

/**
 * Pure: which projector belongs to which model (R79). It lies in the model's folder and either is named after it, or
 * all models of that folder are one model in several quantizations. Nobody guesses between strangers: a projector of
 * another model would stop the engine.
 */
export function pairProjectors(
  allModels: readonly FileGroup[],
  allProjectors: readonly FileGroup[],
): ReadonlyMap<FileGroup, FileStamp> {
  const pairs = new Map<FileGroup, FileStamp>();
  const folders = Map.groupBy(allProjectors, folderOf);
  const modelsByFolder = folders.size === 0 ? new Map<string, FileGroup[]>() : Map.groupBy(allModels, folderOf);
  for (const [folder, projectors] of folders) {
    const models = modelsByFolder.get(folder) ?? [];
    const isOneModel = new Set(models.map(baseOf)).size === 1;
    for (const model of models) {
      const named = projectors.filter(projector => isNamedAfter(projector, model));
      const best = bestOf(
        named.length > 0 ? named : isOneModel ? projectors.filter(projector => mayBelong(projector, model)) : [],
      );
      if (best) pairs.set(model, best.files[0]);
    }
  }
  return pairs;
}

function folderOf({files: [first]}: FileGroup): string {
  return dirname(first.path);
}

function baseOf({name}: FileGroup): string {
  return withoutQuant(name).toLowerCase();
}

function isNamedAfter(projector: FileGroup, model: FileGroup): boolean {
  const {before, after} = projectorClues(basename(projector.files[0].path));
  const base = baseOf(model);
  const [head, tail] = [before.toLowerCase(), after.toLowerCase()];
  // The old cache of llama.cpp puts the repository before the names of both.
  return (head.length > 2 && base.startsWith(head)) || (tail.length > 2 && tail === base);
}

/** `mmproj-model-f16` says nothing of its model; `mmproj-gemma-3` must share a word with it that is no common one. */
function mayBelong(projector: FileGroup, model: FileGroup): boolean {
  const {before, after} = projectorClues(basename(projector.files[0].path));
  const words = `${before}-${after}`.toLowerCase().match(/[\p{L}][\p{L}\d]{2,}/gu) ?? [];
  const telling = words.filter(word => !commonWords.has(word));
  return telling.length === 0 || telling.some(word => baseOf(model).includes(word));
}

const commonWords: ReadonlySet<string> = new Set(['model', 'instruct', 'chat', 'base', 'gguf', 'vision', 'audio']);

function bestOf(projectors: readonly FileGroup[]): FileGroup | undefined {
  const rank = ({name}: FileGroup): number => {
    const index = quantOrder.indexOf(quantOf(name) ?? '');
    return index < 0 ? quantOrder.length : index;
  };
  return projectors.toSorted((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1))[0];
}
