import {spawn} from 'node:child_process';
import type {ChildProcess} from 'node:child_process';
import {once} from 'node:events';
import {chmod, copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {startDaemon} from '../../../test/support/daemon.ts';
import {until} from '../../../test/support/until.ts';

const launcher = join(import.meta.dirname, '..', 'bin', 'hearsay.mjs');
const quickImports = join(import.meta.dirname, '..', 'bin', 'quick-imports.mjs');

/** Tells hooks the conditions of a `require` as the first versions of Node 24 do. */
const early24 = `import module, {syncBuiltinESMExports} from 'node:module';
const {registerHooks} = module;
module.registerHooks = ({resolve}) => registerHooks({
  resolve: (specifier, context, next) =>
    resolve(specifier, {...context, conditions: new Set(context.conditions)}, specifier => next(specifier)),
});
syncBuiltinESMExports();`;

/** Makes a Node say that it is version 20, so that the launcher hands over. */
const oldNode = `const versions = Object.create(process.versions, {node: {value: '20.20.2'}});
Object.defineProperty(process, 'versions', {value: versions});`;

interface Run {
  readonly child: ChildProcess;
  readonly output: () => string;
  readonly exited: Promise<unknown[]>;
}

/** Runs the launcher under an old Node, in a checkout whose Node 24 is the given shell script, or which has none. */
async function launchUnderOldNode(
  t: ExecutionContext,
  node24: string | undefined,
  args: readonly string[],
): Promise<Run> {
  const root = await mkdtemp(join(tmpdir(), 'hearsay-launcher-'));
  t.teardown(async () => rm(root, {recursive: true}));
  const copy = join(root, 'packages', 'cli', 'bin', 'hearsay.mjs');
  const node = join(root, 'node_modules', 'node', 'bin', 'node');
  await mkdir(join(copy, '..'), {recursive: true});
  await mkdir(join(node, '..'), {recursive: true});
  await copyFile(launcher, copy);
  await writeFile(join(root, 'old.mjs'), oldNode);
  if (node24 !== undefined) await writeFile(node, `#!/bin/sh\n${node24}\n`);
  if (node24 !== undefined) await chmod(node, 0o755);
  return run(['--import', join(root, 'old.mjs'), copy, ...args]);
}

function run(args: readonly string[]): Run {
  const child = spawn(process.execPath, args, {stdio: ['ignore', 'pipe', 'pipe']});
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', chunk => (text += chunk));
  return {child, output: () => text, exited: once(child, 'close')};
}

test('under Node 24 the launcher runs the command line in its own process', async t => {
  const {exited, output} = run([launcher, 'version']);
  t.deepEqual(await exited, [0, null]);
  t.regex(output(), /^hearsay \d+\.\d+\.\d+\n$/u);
});

test('a daemon keeps its pid and its arguments, and is told to be modest with memory', async t => {
  const daemon = await startDaemon(t, {name: 'modest', restarts: true});
  const words = (await readFile(`/proc/${daemon.pid}/cmdline`, 'utf8')).split('\0');
  t.deepEqual(words.slice(1, 4), ['--max-semi-space-size=8', launcher, 'serve']);
  t.is((await (await fetch(`${daemon.url}/health`)).json()).node, 'modest');
  const residentKiB = Number(/^VmRSS:\s+(\d+)/mu.exec(await readFile(`/proc/${daemon.pid}/status`, 'utf8'))?.[1]);
  t.true(residentKiB < 250 * 1024, `${residentKiB} KiB; some 145 MiB once Node has cached the sources`);
});

test('what a daemon has compiled is kept for the next one, even if this one is killed', async t => {
  const cache = await mkdtemp(join(tmpdir(), 'hearsay-compiled-'));
  t.teardown(async () => rm(cache, {recursive: true, maxRetries: 3}));
  const daemon = await startDaemon(t, {restarts: true, variables: {NODE_COMPILE_CACHE: cache}});
  const files = async (): Promise<number> => (await readdir(cache, {recursive: true})).length;
  await until('it is kept', async () => (await files()) > 10, 30_000);
  daemon.kill('SIGKILL');
  t.is(await daemon.exited, 137);
});

test('what a daemon tells the C library about memory is not for the engines that it starts', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-variables-'));
  t.teardown(async () => rm(folder, {recursive: true, maxRetries: 5})); // an engine may still write into it
  const engine = join(folder, 'llama-server');
  await writeFile(engine, `#!/bin/sh\nenv >> '${folder}/variables'\necho 'version: 1 (1)'\n`);
  await chmod(engine, 0o755);
  const daemon = await startDaemon(t, {engine, restarts: true, variables: {FOR_ENGINES: 'too'}});
  const variables = async (): Promise<string> => readFile(join(folder, 'variables'), 'utf8').catch(() => '');
  await until('the engine was asked', async () => (await variables()).includes('FOR_ENGINES=too'));
  t.notRegex(await variables(), /MALLOC/u);
  t.regex(await readFile(`/proc/${daemon.pid}/environ`, 'utf8'), /MALLOC_MMAP_THRESHOLD_=1048576/u);
});

test('an older Node hands over to the one in node_modules, with arguments and exit code', async t => {
  const {exited, output} = await launchUnderOldNode(t, 'shift; echo "$@"; exit 7', ['stop', 'a model']);
  t.deepEqual(await exited, [7, null]);
  t.is(output(), 'stop a model\n');
});

test('a signal to the launcher reaches the Node it has handed over to', async t => {
  const {child, exited, output} = await launchUnderOldNode(
    t,
    `trap 'echo term; exit 3' TERM; echo up; for i in $(seq 400); do sleep 0.05; done`,
    [],
  );
  await once(child.stdout ?? child, 'data');
  child.kill('SIGTERM');
  t.deepEqual(await exited, [3, null]);
  t.is(output(), 'up\nterm\n');
});

test('when a signal kills the Node it has handed over to, the launcher ends as a shell would', async t => {
  const {exited} = await launchUnderOldNode(t, 'kill -KILL $$', []);
  t.deepEqual(await exited, [137, null]);
});

test('an older Node without another one says what to do', async t => {
  const {exited, output} = await launchUnderOldNode(t, undefined, ['ps']);
  t.deepEqual(await exited, [1, null]);
  t.regex(output(), /needs Node 24 or newer, .* run: npm install/u);
});

test('what is required is found under the first versions of Node 24 too, which tell its conditions as a set', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-early-'));
  t.teardown(async () => rm(folder, {recursive: true}));
  await writeFile(join(folder, 'early.mjs'), early24);
  await writeFile(join(folder, 'part.cjs'), `module.exports = 'found';`);
  await writeFile(join(folder, 'main.cjs'), `console.log(require('./part.cjs'));`);
  const preloads = ['--import', join(folder, 'early.mjs'), '--import', quickImports];
  const {exited, output} = run([...preloads, join(folder, 'main.cjs')]);
  t.deepEqual([await exited, output()], [[0, null], 'found\n']);
});
