import {readFile, rename, writeFile} from 'node:fs/promises';
import {Fault, hasCode} from '@hearsay/core';
import {isObject, parseObject} from '../json.ts';
import type {JsonObject} from '../json.ts';
import type {Preset} from './known-model.ts';
import {nameKey} from './model-name.ts';

/** The names that clients have made, kept in a file. */
export interface Presets {
  list(): readonly Preset[];
  find(name: string): Preset | undefined;
  /** Replaces what had the name. Resolves when the file has been written. */
  put(preset: Preset): Promise<void>;
  /** False: there was none of that name. */
  remove(name: string): Promise<boolean>;
}

/** Far more than people make by hand; whoever has so many has a program that went wrong. */
const presetsMax = 1000;

/** Largest file that is read: every preset with a long system text. */
const fileBytesMax = 64 * 1024 * 1024;

/** Reads the file, which need not exist. Without a file nothing can be put. Throws BAD_CONFIG when it is damaged. */
export async function openPresets(file: string | undefined): Promise<Presets> {
  const presets = new Map<string, Preset>();
  for (const preset of file === undefined ? [] : await readPresets(file)) presets.set(nameKey(preset.name), preset);
  let written: Promise<void> = Promise.resolve();

  function save(): Promise<void> {
    const text = JSON.stringify({presets: [...presets.values()]}, undefined, 2);
    written = written.catch(() => undefined).then(() => (file === undefined ? undefined : replaceFile(file, text)));
    return written;
  }
  return {
    list: () => [...presets.values()],
    find: name => presets.get(nameKey(name)),
    put: async preset => {
      if (file === undefined) throw new Fault('BAD_REQUEST', 'this node has no data folder to keep names in');
      if (presets.size >= presetsMax && !presets.has(nameKey(preset.name))) {
        throw new Fault('BAD_REQUEST', `there are ${presetsMax} names already; delete some of them`);
      }
      presets.set(nameKey(preset.name), preset);
      await save();
    },
    remove: async name => {
      const had = presets.delete(nameKey(name));
      if (had) await save();
      return had;
    },
  };
}

async function readPresets(file: string): Promise<readonly Preset[]> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (cause) {
    if (hasCode(cause, 'ENOENT')) return [];
    throw new Fault('BAD_CONFIG', `cannot read ${file}`, {cause, details: {file}});
  }
  const list: unknown = text.length > fileBytesMax ? undefined : parseObject(text)?.['presets'];
  if (!Array.isArray(list)) {
    throw new Fault(
      'BAD_CONFIG',
      `${file} is damaged: it holds the names made by create and copy; repair or remove it`,
    );
  }
  return list.filter(isObject).flatMap(readPreset);
}

function readPreset(value: JsonObject): readonly Preset[] {
  const {name, from, system, parameters, messages, license, madeWallMs} = value;
  if (typeof name !== 'string' || typeof from !== 'string') return [];
  return [
    {
      name,
      from,
      system: typeof system === 'string' ? system : '',
      parameters: isObject(parameters) ? parameters : {},
      messages: Array.isArray(messages) ? messages.filter(isObject) : [],
      license: typeof license === 'string' ? license : '',
      madeWallMs: typeof madeWallMs === 'number' ? madeWallMs : 0,
    },
  ];
}

/** So that a crash leaves the old file or the new one, and never half of one. */
async function replaceFile(file: string, text: string): Promise<void> {
  const next = `${file}.next`;
  await writeFile(next, text, {mode: 0o600});
  await rename(next, file);
}
