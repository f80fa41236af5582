import {createHash} from 'node:crypto';
import {mkdir, readdir, readFile, rename, stat, writeFile} from 'node:fs/promises';
import {basename, join} from 'node:path';
import {Fault, type Clock} from '@hearsay/core';
import type {InstallProgress} from './install-engine.ts';
import {runCommand} from './run-command.ts';

/** The part of llama.cpp's source tree that a build reads. */
export const sourceFolders: readonly string[] = words(
  'tools/server tools/mtmd tools/ui/ui.h.in vendor common include src ggml/include',
);

export interface ServerBuild {
  readonly source: string;
  /** Holds the libraries to link with; the executable goes beside them. */
  readonly target: string;
  /** Keeps what is compiled, so that a killed build goes on where it was. */
  readonly work: string;
  /** Else g++, else clang++. */
  readonly compiler: string | undefined;
  readonly jobs: number;
  readonly report: (progress: InstallProgress) => void;
}

interface Unit {
  readonly file: string;
  readonly language: 'c' | 'c++';
}

/** The longest file takes 12 s on a laptop; a small board under load may need fifty times as long. */
const compileTimeLimitMs = 10 * 60_000;

/** The defines of llama.cpp's own CMake files. -O1: the libraries compute the tokens, the server only moves them. */
const flags: readonly string[] = words(`
  -O1 -fPIC -w -DNDEBUG -DLLAMA_SUBPROCESS -DLLAMA_SHARED -DGGML_SHARED -DGGML_BACKEND_SHARED
  -DCPPHTTPLIB_FORM_URL_ENCODED_PAYLOAD_MAX_LENGTH=1048576 -DCPPHTTPLIB_REQUEST_URI_MAX_LENGTH=32768
  -DCPPHTTPLIB_LISTEN_BACKLOG=512 -DCPPHTTPLIB_TCP_NODELAY=1
`);

const includeFolders: readonly string[] = words(
  'tools/server tools/mtmd . common vendor vendor/hash include ggml/include',
);

/** Compiles llama.cpp's server and multimodal tools, and links them with ready-made libraries of the same release. */
export async function buildServer(
  build: ServerBuild,
  deps: {readonly clock: Clock},
  signal?: AbortSignal,
): Promise<void> {
  const compiler = await findCompiler(build.compiler, deps, signal);
  const generated = await writeGenerated(build.source, build.work);
  const folders = [...includeFolders.map(folder => join(build.source, folder)), generated];
  const options = [...flags, ...folders.map(folder => `-I${folder}`)];
  // Objects of another compiler or with other flags must not be mixed in.
  const key = createHash('sha256')
    .update(JSON.stringify([compiler, options]))
    .digest('hex')
    .slice(0, 16);
  const objects = join(build.work, `objects-${key}`);
  await mkdir(objects, {recursive: true});

  const units = await unitsOf(build.source, generated);
  await compileAll(units, {...build, compiler: compiler.command, options, objects}, deps, signal);

  build.report({step: 'link', done: 0, total: 1, note: 'llama-server'});
  const libraries = (await readdir(build.target)).filter(name => /^lib(?:llama|ggml(?:-base)?\.)/.test(name));
  const inputs = [
    ...units.map(unit => join(objects, objectName(unit))),
    ...libraries.map(name => join(build.target, name)),
  ];
  const output = ['-o', join(build.target, 'llama-server'), '-Wl,-rpath,$ORIGIN', '-lpthread', '-ldl'];
  await runCommand(compiler.command, [...inputs, ...output], {timeLimitMs: compileTimeLimitMs}, deps, signal);
}

async function findCompiler(
  configured: string | undefined,
  deps: {readonly clock: Clock},
  signal: AbortSignal | undefined,
): Promise<{readonly command: string; readonly version: string}> {
  const candidates = configured === undefined || configured === '' ? ['g++', 'clang++'] : [configured];
  for (const command of candidates) {
    try {
      const {stdout} = await runCommand(command, ['--version'], {timeLimitMs: compileTimeLimitMs}, deps, signal);
      return {command, version: stdout};
    } catch (error) {
      if (!(error instanceof Fault && error.details['missing'] === command)) throw error;
    }
  }
  const names = candidates.join(' and ');
  throw new Fault('INSTALL_FAILED', `no C++ compiler: ${names} not found`, {details: {missing: candidates}});
}

/** Files that llama.cpp's CMake would generate: here for a server without a web page. */
async function writeGenerated(source: string, work: string): Promise<string> {
  const folder = join(work, 'generated');
  await mkdir(folder, {recursive: true});
  const header = await readFile(join(source, 'tools/ui/ui.h.in'), 'utf8');
  await writeFile(join(folder, 'ui.h'), header.replace(/^#cmakedefine .*$/m, '').replaceAll('@N_ASSETS@', '0'));
  await writeFile(
    join(folder, 'ui.cpp'),
    [
      '#include "ui.h"',
      'const llama_ui_asset * llama_ui_find_asset(const std::string &) { return nullptr; }',
      'bool llama_ui_use_gzip() { return false; }',
      'const std::array<llama_ui_asset, 0> & llama_ui_get_assets() {',
      '  static const std::array<llama_ui_asset, 0> none{};',
      '  return none;',
      '}',
    ].join('\n'),
  );
  // Fifty small files that read the same large headers: as one they take 3 s instead of 40 s.
  const models = await filesIn(join(source, 'tools/mtmd/models'), '.cpp');
  await writeFile(join(folder, 'mtmd-models.cpp'), models.map(file => `#include "${file}"\n`).join(''));
  return folder;
}

/** Largest first, so that no long one is left alone at the end. */
async function unitsOf(source: string, generated: string): Promise<Unit[]> {
  const mtmd = await filesIn(join(source, 'tools/mtmd'), '.cpp');
  const cpp = [
    ...(await filesIn(join(source, 'tools/server'), '.cpp')),
    ...mtmd.filter(file => !['mtmd-cli.cpp', 'deprecation-warning.cpp'].includes(basename(file))),
    join(source, 'vendor/cpp-httplib/httplib.cpp'),
    join(source, 'vendor/hash/hash.cpp'),
    join(source, 'vendor/hash/sha1/sha1.c'), // C++ in spite of its name: llama.cpp puts it into a namespace
    join(generated, 'mtmd-models.cpp'),
    join(generated, 'ui.cpp'),
  ];
  const c = ['sha256/sha256.c', 'xxhash/xxhash.c'].map(file => join(source, 'vendor/hash', file));
  const units: Unit[] = [
    ...cpp.map(file => ({file, language: 'c++'}) as const),
    ...c.map(file => ({file, language: 'c'}) as const),
  ];
  const sized = await Promise.all(units.map(async unit => ({unit, size: (await stat(unit.file)).size})));
  return sized.toSorted((a, b) => b.size - a.size).map(entry => entry.unit);
}

interface Compilation {
  readonly compiler: string;
  readonly options: readonly string[];
  readonly objects: string;
  readonly jobs: number;
  readonly report: (progress: InstallProgress) => void;
}

/** Runs `jobs` compilers at once. The first error stops the others, and is thrown when they have ended. */
async function compileAll(
  units: readonly Unit[],
  how: Compilation,
  deps: {readonly clock: Clock},
  signal: AbortSignal | undefined,
): Promise<void> {
  const stop = new AbortController();
  const either = signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]);
  const present = new Set(await readdir(how.objects));
  const missing = units.filter(unit => !present.has(objectName(unit)));
  let done = units.length - missing.length;
  const queue = missing.values();
  const worker = async (): Promise<void> => {
    for (const unit of queue) {
      how.report({step: 'compile', done, total: units.length, note: basename(unit.file)});
      await compile(unit, how, deps, either);
      done += 1;
    }
  };
  const workers = Array.from({length: Math.max(1, how.jobs)}, async () => {
    try {
      await worker();
    } catch (error) {
      stop.abort(error);
    }
  });
  await Promise.all(workers);
  either.throwIfAborted();
}

/** An object gets its name when it is whole, so whatever has the name may be linked. */
async function compile(
  unit: Unit,
  how: Compilation,
  deps: {readonly clock: Clock},
  signal: AbortSignal,
): Promise<void> {
  const object = join(how.objects, objectName(unit));
  const partial = `${object}.${process.pid}`;
  const language = ['-x', unit.language, ...(unit.language === 'c++' ? ['-std=c++17'] : [])];
  const options = [...language, ...how.options, '-c', unit.file, '-o', partial];
  await runCommand(how.compiler, options, {timeLimitMs: compileTimeLimitMs}, deps, signal);
  await rename(partial, object);
}

function objectName(unit: Unit): string {
  return `${basename(unit.file)}.o`;
}

async function filesIn(folder: string, suffix: string): Promise<string[]> {
  const names = await readdir(folder);
  return names
    .filter(name => name.endsWith(suffix))
    .toSorted()
    .map(name => join(folder, name));
}

function words(text: string): string[] {
  return text.trim().split(/\s+/);
}
