import {mkdir, readFile, rename, rm, writeFile} from 'node:fs/promises';
import {dirname} from 'node:path';
import {
  bytesPerTokenMax,
  hasCode,
  isDigest,
  isNews,
  isProven,
  learn,
  learnedNames,
  nothingLearned,
} from '@hearsay/core';
import type {Digest, EngineHost, EngineStateName, Environment, LearnedFacts} from '@hearsay/core';
import type {Timings} from './read-timings.ts';

/** Models whose speeds are remembered; the one not used for longest goes first. */
const modelsMax = 500;

/** News is told at most this often: each makes every peer fetch the inventory. */
const tellGapMs = 2000;

/** A few seconds of experience may be lost in a crash. */
const saveAfterMs = 10_000;

/** Shorter texts say more about the machine's jitter than about its speed. */
const promptTokensMin = 16;
const outputTokensMin = 4;

const version = 1;

/** What this node has learned of its own models: it outlives a restart, and others are told of it. */
export interface Experience extends AsyncDisposable {
  /** As it was told last; a new object whenever it is told again. */
  readonly told: (digest: Digest) => LearnedFacts | undefined;
  /** One request has ended well on this node. */
  readonly answered: (digest: Digest, run: {readonly bodyBytes: number; readonly timings: Timings}) => void;
  /** Calls back when something should be told, until disposed. */
  readonly onNews: (listener: () => void) => void;
}

export interface ExperienceDeps extends Environment {
  readonly engines: Pick<EngineHost, 'engines' | 'onChange'>;
}

/** Reads what was learned before and watches how long this node's engines take to load. */
export async function startExperience(file: string | undefined, deps: ExperienceDeps): Promise<Experience> {
  const {clock, engines, log} = deps;
  const known = file === undefined ? new Map<Digest, LearnedFacts>() : await readFacts(file, deps);
  const told = new Map(known);
  let listener: () => void = () => undefined;
  let toldAtMs = -Infinity;
  let telling: Disposable | undefined;
  let saving: Disposable | undefined;
  let saved: Promise<void> = Promise.resolve();

  function add(digest: Digest, sample: Partial<LearnedFacts>): void {
    if (!isProven(digest)) return;
    const facts = learn(known.get(digest) ?? nothingLearned, sample);
    known.delete(digest); // to the end: the map is kept in order of use
    known.set(digest, facts);
    for (const oldest of known.keys()) {
      if (known.size <= modelsMax) break;
      known.delete(oldest);
      told.delete(oldest);
    }
    if (isNews(told.get(digest), facts)) {
      telling ??= clock.after(Math.max(0, toldAtMs + tellGapMs - clock.monotonicMs()), tell);
    }
    if (file !== undefined) saving ??= clock.after(saveAfterMs, () => save(file));
  }

  function tell(): void {
    telling = undefined;
    toldAtMs = clock.monotonicMs();
    for (const [digest, facts] of known) if (isNews(told.get(digest), facts)) told.set(digest, facts);
    listener();
  }

  function save(path: string): void {
    saving = undefined;
    saved = saveAfter(saved, path);
  }

  async function saveAfter(earlier: Promise<void>, path: string): Promise<void> {
    await earlier;
    try {
      await writeFacts(path, known);
    } catch (error) {
      log('warn', 'could not save what this node has learned of its models', {file, error: String(error)});
    }
  }

  const states = new Map<string, {readonly state: EngineStateName; readonly sinceMs: number}>();
  const watch = engines.onChange(() => {
    for (const {key, loadMs, model, state} of engines.engines()) {
      const before = states.get(key);
      if (before?.state === state) continue;
      const nowMs = clock.monotonicMs();
      states.set(key, {state, sinceMs: nowMs});
      if (state !== 'ready' || before?.state !== 'starting') continue;
      add(model.digest, {loadMs: loadMs ?? nowMs - before.sinceMs}); // the engine knows when it had its memory
    }
  });

  return {
    told: digest => told.get(digest),
    answered(digest, {bodyBytes, timings}) {
      const {cachedTokens, promptTokens, promptMs, outputTokens, outputMs} = timings;
      const bytesPerToken = bodyBytes / (cachedTokens + promptTokens);
      add(digest, {
        prefillTps: promptTokens < promptTokensMin ? undefined : (1000 * promptTokens) / promptMs,
        decodeTps: outputTokens < outputTokensMin ? undefined : (1000 * outputTokens) / outputMs,
        holdMs: promptMs + outputMs,
        outputTokens,
        bytesPerToken: bytesPerToken > bytesPerTokenMax ? undefined : bytesPerToken, // more are pictures or sound
      });
    },
    onNews(call) {
      listener = call;
    },
    async [Symbol.asyncDispose]() {
      watch[Symbol.dispose]();
      telling?.[Symbol.dispose]();
      if (saving && file !== undefined) {
        saving[Symbol.dispose]();
        save(file);
      }
      await saved;
    },
  };
}

/** Nothing is lost but time when the file is missing or damaged: it is learned again. */
async function readFacts(file: string, {log}: Environment): Promise<Map<Digest, LearnedFacts>> {
  try {
    return parseFacts(JSON.parse(await readFile(file, 'utf8')));
  } catch (error) {
    if (!hasCode(error, 'ENOENT'))
      log('warn', 'what this node had learned cannot be read; it learns anew', {file, error: String(error)});
    return new Map();
  }
}

function parseFacts(json: unknown): Map<Digest, LearnedFacts> {
  const facts = new Map<Digest, LearnedFacts>();
  if (typeof json !== 'object' || json === null || Reflect.get(json, 'version') !== version) {
    throw new TypeError('it is of another version');
  }
  const models: unknown = Reflect.get(json, 'models');
  const entries: readonly (readonly [string, unknown])[] =
    typeof models === 'object' && models !== null ? Object.entries(models) : [];
  for (const [digest, values] of entries.slice(0, modelsMax)) {
    if (!isDigest(digest) || typeof values !== 'object' || values === null) continue;
    const sample: Partial<Record<keyof LearnedFacts, number>> = {};
    for (const name of learnedNames) {
      const value: unknown = Reflect.get(values, name);
      if (typeof value === 'number') sample[name] = value;
    }
    facts.set(digest, learn(nothingLearned, sample));
  }
  return facts;
}

/** Appears whole or not at all. */
async function writeFacts(file: string, facts: ReadonlyMap<Digest, LearnedFacts>): Promise<void> {
  const unfinished = `${file}.new`;
  await mkdir(dirname(file), {recursive: true});
  try {
    await writeFile(unfinished, JSON.stringify({version, models: Object.fromEntries(facts)}), {mode: 0o600});
    await rename(unfinished, file);
  } catch (error) {
    await rm(unfinished, {force: true});
    throw error;
  }
}
