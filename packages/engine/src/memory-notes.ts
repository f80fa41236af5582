import {mkdir, readFile} from 'node:fs/promises';
import {dirname} from 'node:path';
import {describeError, hasCode, isObject} from '@hearsay/core';
import type {Environment} from '@hearsay/core';
import {writeWhole} from './write-whole.ts';

/** What decides how much memory a load takes. */
export interface LoadKey {
  readonly digest: string;
  readonly context: number;
  readonly slots: number;
  readonly place: 'device' | 'ram';
  /** Name and version of the engine: another one may lay its memory out otherwise. */
  readonly engine: string;
}

/** Remembers between starts what loads really took, and corrects estimates by it. */
export interface MemoryNotes extends AsyncDisposable {
  /** What the load will take, as far as anybody knows. */
  readonly correct: (key: LoadKey, estimateBytes: number) => number;
  readonly note: (key: LoadKey, estimateBytes: number, takenBytes: number) => void;
}

interface Note extends LoadKey {
  readonly estimateBytes: number;
  readonly takenBytes: number;
}

/** Most loads remembered, the latest; some 100 kB. */
const notesMax = 500;

/** An engine grows while it answers its first requests; that is one note, not one for each. */
const saveAfterMs = 1_000;

/** Of the file's layout; notes of another version are dropped. */
const version = 1;

/** Less than this of its estimate no load takes; a smaller measurement is a wrong one. */
const shareLeast = 0.1;

/** Opens the notes kept in this file; without one they last as long as this process. */
export async function openMemoryNotes(file: string | undefined, environment: Environment): Promise<MemoryNotes> {
  const {clock, log} = environment;
  const notes = file === undefined ? new Map<string, Note>() : await loadNotes(file, log);
  let timer: Disposable | undefined;
  let saving = Promise.resolve();

  async function save(path: string): Promise<void> {
    try {
      await mkdir(dirname(path), {recursive: true});
      await writeWhole(path, JSON.stringify({version, loads: [...notes.values()]}));
    } catch (error) {
      log('warn', 'cannot remember how much memory a model took', {error: describeError(error)});
    }
  }

  function saveNow(): void {
    timer = undefined;
    if (file !== undefined) saving = saving.then(() => save(file));
  }

  return {
    correct(key, estimateBytes) {
      const same = notes.get(keyText(key));
      if (same !== undefined) return same.takenBytes;
      const alike = [...notes.values()].findLast(note => isAlike(note, key));
      if (alike === undefined) return estimateBytes;
      // The error of the formula is mostly one of constants: it is the same at another size of the cache.
      return Math.max(shareLeast * estimateBytes, estimateBytes + alike.takenBytes - alike.estimateBytes);
    },
    note(key, estimateBytes, takenBytes) {
      if (takenBytes < shareLeast * estimateBytes) return;
      const text = keyText(key);
      if (notes.get(text)?.takenBytes === takenBytes) return;
      notes.delete(text); // to the end: the map is kept in order of age
      const {digest, context, slots, place, engine} = key;
      notes.set(text, {digest, context, slots, place, engine, estimateBytes, takenBytes});
      for (const oldest of notes.keys()) {
        if (notes.size <= notesMax) break;
        notes.delete(oldest);
      }
      timer ??= clock.after(saveAfterMs, saveNow);
    },
    async [Symbol.asyncDispose]() {
      if (timer !== undefined) {
        timer[Symbol.dispose]();
        saveNow();
      }
      await saving;
    },
  };
}

function keyText({digest, context, slots, place, engine}: LoadKey): string {
  return [digest, context, slots, place, engine].join(' ');
}

function isAlike(note: Note, key: LoadKey): boolean {
  return note.digest === key.digest && note.place === key.place && note.engine === key.engine;
}

/** A damaged file costs only what was remembered. */
async function loadNotes(file: string, log: Environment['log']): Promise<Map<string, Note>> {
  try {
    const json: unknown = JSON.parse(await readFile(file, 'utf8'));
    if (!isObject(json) || json['version'] !== version || !Array.isArray(json['loads'])) return new Map();
    const loads: readonly unknown[] = json['loads'];
    const notes = loads.slice(-notesMax).flatMap(load => parseNote(load));
    return new Map(notes.map(note => [keyText(note), note]));
  } catch (error) {
    if (!hasCode(error, 'ENOENT'))
      log('warn', 'what models took in memory is forgotten', {error: describeError(error)});
    return new Map();
  }
}

function parseNote(json: unknown): readonly Note[] {
  if (!isObject(json)) return [];
  const {digest, context, slots, place, engine, estimateBytes, takenBytes} = json;
  if (typeof digest !== 'string' || typeof engine !== 'string') return [];
  if (place !== 'device' && place !== 'ram') return [];
  if (!isCount(context) || !isCount(slots) || !isCount(estimateBytes) || !isCount(takenBytes)) return [];
  return [{digest, context, slots, place, engine, estimateBytes, takenBytes}];
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}
