import {execFileSync, spawn, type ChildProcessByStdio} from 'node:child_process';
import {createHash} from 'node:crypto';
import {writeFileSync} from 'node:fs';
import {mkdir, mkdtemp, readdir, readFile, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {dirname, join} from 'node:path';
import type {Readable} from 'node:stream';
import {text} from 'node:stream/consumers';
import {Fault} from '@hearsay/core';
import test, {type ExecutionContext} from 'ava';
import {realEnvironment} from '../../../test/support/environment.ts';
import {until} from '../../../test/support/until.ts';
import {platform} from './engine-store.ts';
import {findEngine} from './find-engine.ts';
import {installEngine, type InstallOptions} from './install-engine.ts';

const deps = realEnvironment();

/** llama.cpp's tree as the build sees it, with a few words in every file. */
const sources: Readonly<Record<string, string>> = {
  'tools/server/main.cpp': `#include <cstdio>
    #include "ui.h"
    #include "parts.h"
    int main() { std::fprintf(stderr, "version: %d (tiny)\\n",
      library() + models() + (int) llama_ui_get_assets().size()); }`,
  'tools/server/parts.h': 'extern "C" int library(); int models();',
  'tools/server/server.cpp': 'int server() { return 1; }',
  'tools/mtmd/clip.cpp': 'int clip() { return 1; }',
  'tools/mtmd/mtmd-cli.cpp': '#error "not a part of the server"',
  'tools/mtmd/models/a.cpp': 'static int a() { return 2; }',
  'tools/mtmd/models/b.cpp': 'int models() { return a(); }',
  'tools/ui/ui.h.in': `#pragma once
    #include <array>
    #include <string>
#cmakedefine LLAMA_UI_HAS_ASSETS 1
    struct llama_ui_asset { std::string name; };
    const llama_ui_asset * llama_ui_find_asset(const std::string & name);
    bool llama_ui_use_gzip();
    const std::array<llama_ui_asset, @N_ASSETS@> & llama_ui_get_assets();`,
  'vendor/cpp-httplib/httplib.cpp': 'int httplib() { return CPPHTTPLIB_LISTEN_BACKLOG; }',
  'vendor/hash/hash.cpp': 'int hash() { return 1; }',
  'vendor/hash/sha1/sha1.c': 'namespace sha1 { int run() { return 1; } }',
  'vendor/hash/sha256/sha256.c': 'int sha256(void) { int class = 1; return class; }',
  'vendor/hash/xxhash/xxhash.c': 'int xxhash(void) { return 1; }',
  'common/common.h': '',
  'include/llama.h': '',
  'src/llama-ext.h': '',
  'ggml/include/ggml.h': '',
};

const unitCount = 10;

interface Registry {
  readonly folder: string;
  readonly options: InstallOptions;
  /** Files compiled so far, as the compiler saw them. */
  readonly compiled: () => Promise<string[]>;
}

/** Two packages made here, which npm packs like those of the registry, and a g++ that writes down what it compiles. */
async function registry(t: ExecutionContext, compilerExtra = ''): Promise<Registry> {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-registry-'));
  t.teardown(() => rm(folder, {recursive: true, force: true, maxRetries: 5}));
  const tree = join(folder, 'tree');
  for (const [name, content] of Object.entries(sources)) await writeInto(join(tree, name), content);
  const git = (...words: string[]): Buffer => execFileSync('git', ['-C', tree, ...words]);
  git('init', '--quiet');
  git('add', '.');
  git('-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '--quiet', '--message', 'tiny');
  const bundle = join(folder, 'source', 'llama', 'gitRelease.bundle');
  await mkdir(dirname(bundle), {recursive: true});
  git('bundle', 'create', '--quiet', bundle, 'HEAD');

  await writeInto(join(folder, 'library.cpp'), 'extern "C" int library() { return 40; }');
  const library = join(folder, 'libraries', 'bins', 'here', 'libllama.v1.so');
  await mkdir(dirname(library), {recursive: true});
  const soname = '-Wl,-soname,libllama.v1.so';
  execFileSync('g++', ['-shared', '-fPIC', soname, '-o', library, join(folder, 'library.cpp')]);

  const log = join(folder, 'compiled');
  const compiler = join(folder, 'c++');
  const note = `case "$*" in *" -c "*) ${compilerExtra} echo "$*" >> ${log};; esac`;
  await writeFile(compiler, `#!/bin/sh\n${note}\nexec g++ "$@"\n`, {mode: 0o755});
  const packages = {
    release: 'v1',
    source: await pack(join(folder, 'source'), folder),
    libraries: {[platform]: await pack(join(folder, 'libraries'), folder)},
  };
  const options: InstallOptions = {from: 'registry', cacheFolder: join(folder, 'cache'), compiler, packages, jobs: 1};
  const compiled = async (): Promise<string[]> => {
    const lines = await readFile(log, 'utf8').catch(() => '');
    return lines.split('\n').filter(line => line !== '');
  };
  return {folder, options, compiled};
}

async function pack(content: string, folder: string): Promise<{spec: string; integrity: string}> {
  const name = content.split('/').at(-1);
  // A script that would be run if the install ran scripts.
  const scripts = {prepack: 'exit 1', install: 'exit 1'};
  await writeInto(join(content, 'package.json'), JSON.stringify({name, version: '1.0.0', scripts}));
  const spec = join(folder, `${name}.tgz`);
  execFileSync('tar', ['-czf', spec, '--transform', 's,^[.],package,', '-C', content, '.']);
  const integrity = `sha512-${createHash('sha512')
    .update(await readFile(spec))
    .digest('base64')}`;
  return {spec, integrity};
}

async function writeInto(file: string, content: string): Promise<void> {
  await mkdir(dirname(file), {recursive: true});
  await writeFile(file, content);
}

/** Another process that installs; prints its progress and, at the end, the engine. */
const installer = `
  import {installEngine, formatProgress} from ${JSON.stringify(new URL('install-engine.ts', import.meta.url))};
  import {realEnvironment} from ${JSON.stringify(new URL('../../../test/support/environment.ts', import.meta.url))};
  const onProgress = progress => console.log(formatProgress(progress));
  console.log(JSON.stringify(await installEngine({...JSON.parse(process.argv[1]), onProgress}, realEnvironment())));
`;

function installElsewhere(options: InstallOptions): ChildProcessByStdio<null, Readable, null> {
  const words = ['--input-type=module', '--eval', installer, JSON.stringify(options)];
  return spawn(process.execPath, words, {stdio: ['ignore', 'pipe', 'inherit']});
}

/** Compilers wait once so many have run, until there is a file `go`; not for ever, as nobody may come to make it. */
function waitAfter(count: number): string {
  const [here, limit] = ['"${0%/*}"', 1200];
  const isOver = `[ -e ${here}/go ] || [ "$n" -ge ${limit} ] || [ "$(cat ${here}/compiled 2>/dev/null | wc -l)" -lt ${count} ]`;
  return `n=0; until ${isOver}; do sleep 0.05; n=$((n+1)); done;`;
}

const isLinux = process.platform === 'linux';
const linux = isLinux ? test : test.skip; // the libraries and the linker's words are those of Linux
if (!isLinux) console.log('skipped: installing from the registry, whose libraries are tested on Linux only');

linux('the server is compiled from the source package and linked with the library package', async t => {
  const {options, compiled} = await registry(t);
  const steps = new Set<string>();
  const engine = await installEngine({...options, onProgress: progress => steps.add(progress.step)}, deps);
  t.is(engine.version, '42 (tiny)', 'the library says 40, the source 2');
  t.deepEqual([...steps], ['download', 'unpack', 'compile', 'link', 'verify']);
  t.is((await compiled()).length, unitCount);
  t.deepEqual(await findEngine({searchPath: '', cacheFolder: options.cacheFolder}, deps), engine);
  const left = await readdir(join(options.cacheFolder, 'engines'));
  t.deepEqual(left.toSorted(), ['.install.lock', `llama.cpp-v1-${platform}`]);
});

linux('a killed install leaves no engine, and the next one compiles only what is missing', async t => {
  const {options, folder, compiled} = await registry(t, waitAfter(4));
  const child = installElsewhere(options);
  await until('four are compiled', async () => (await compiled()).length === 4, 20_000);
  child.kill('SIGKILL');
  t.is(await findEngine({searchPath: '', cacheFolder: options.cacheFolder}, deps), undefined);
  await writeFile(join(folder, 'go'), '');

  let firstDone: number | undefined;
  const onProgress: InstallOptions['onProgress'] = progress => {
    if (progress.step === 'compile') firstDone ??= progress.done;
  };
  const engine = await installEngine({...options, onProgress}, deps);
  t.is(engine.version, '42 (tiny)');
  t.true((firstDone ?? 0) >= 3, `${firstDone} were there`);
  t.true((await compiled()).length <= unitCount + 1, 'at most the one that was being compiled is compiled twice');
});

linux('two processes that install at once make one engine, and the second says for whom it waits', async t => {
  const {options, folder, compiled} = await registry(t, waitAfter(0));
  const children = [installElsewhere(options), installElsewhere(options)];
  const reading = children.map(child => text(child.stdout.on('data', goOnWhenOneWaits)));
  let said = '';
  function goOnWhenOneWaits(bytes: Buffer): void {
    said += bytes.toString();
    if (/wait for process \d+\n/u.test(said)) writeFileSync(join(folder, 'go'), '');
  }
  const outputs = await Promise.all(reading);
  const engines = outputs.map(output => output.trim().split('\n').at(-1));
  t.regex(engines[0] ?? '', /42 \(tiny\)/);
  t.is(engines[0], engines[1]);
  t.is((await compiled()).length, unitCount);
  const waiter = outputs.findIndex(output => output.includes('wait for process'));
  t.true(outputs[waiter]?.includes(`wait for process ${children[1 - waiter]?.pid}`));
});

linux('a package with other bytes than the pinned ones is never unpacked', async t => {
  const {options, compiled} = await registry(t);
  const {packages} = options;
  if (packages === undefined) return t.fail();
  const source = {...packages.source, integrity: `sha512-${'A'.repeat(86)}==`};
  const fault = await t.throwsAsync(installEngine({...options, packages: {...packages, source}}, deps), {
    instanceOf: Fault,
    message: /is not the file that hearsay knows/,
  });
  t.is(fault?.code, 'INSTALL_FAILED');
  t.deepEqual(await compiled(), []);
});

linux('a missing compiler, and a platform without libraries, are faults that say what to install', async t => {
  const {options, folder} = await registry(t);
  const missing = installEngine({...options, compiler: join(folder, 'no-compiler')}, deps);
  const fault = await t.throwsAsync(missing, {instanceOf: Fault, message: /no C\+\+ compiler.*apt install g\+\+ git/s});
  t.is(fault?.code, 'INSTALL_FAILED');

  const {packages} = options;
  if (packages === undefined) return;
  const elsewhere = installEngine({...options, packages: {...packages, libraries: {}}}, deps);
  await t.throwsAsync(elsewhere, {instanceOf: Fault, message: new RegExp(`not ${platform}.*brew install`, 's')});
});

linux('an aborted install ends the compiler, keeps the reason, and leaves no engine', async t => {
  const {options, compiled} = await registry(t);
  const stop = new AbortController();
  const onProgress: InstallOptions['onProgress'] = progress => {
    if (progress.step === 'compile' && progress.done === 2) stop.abort(new Error('no time'));
  };
  await t.throwsAsync(installEngine({...options, onProgress}, deps, stop.signal), {message: 'no time'});
  t.true((await compiled()).length <= 3);
  t.is(await findEngine({searchPath: '', cacheFolder: options.cacheFolder}, deps), undefined);
  t.is((await installEngine(options, deps)).version, '42 (tiny)');
});

linux('a new engine that cannot run the model is not installed', async t => {
  const {options, folder} = await registry(t);
  const failing = installEngine({...options, selfTestModel: join(folder, 'none.gguf')}, deps);
  await t.throwsAsync(failing, {instanceOf: Fault, message: /cannot run a model: it ended at once/});
  t.is(await findEngine({searchPath: '', cacheFolder: options.cacheFolder}, deps), undefined);
});
