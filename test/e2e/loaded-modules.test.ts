import {spawnSync} from 'node:child_process';
import {mkdtemp, readFile, rm} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {z} from 'zod';
import {runCli, startDaemon} from '../support/daemon.ts';

/** What a process loads costs it time at its start and memory for ever; these parts are of no use to most of them. */
const heavy = {
  languages: /\/zod\/v4\/locales\/(?!en\.js)/u,
  fetch: /^NativeModule internal\/deps\/undici\//u,
  daemon: /\/cli\/src\/(?:serve|start-serving)\.ts$|\/packages\/(?:cluster|engine|gateway|mesh|models)\//u,
  libp2p: /\/node_modules\/(?:@libp2p|@chainsafe|libp2p)\//u,
  httpServer: /\/node_modules\/fastify\//u,
  /** Fastify's, a tenth of all that a start loads. */
  schemaCompilers: /\/node_modules\/(?:ajv|fast-json-stringify-compiler)\//u,
  log: /\/node_modules\/pino\//u,
  config: /\/node_modules\/smol-toml\/|\/cli\/src\/load-config\.ts$/u,
  qrCode: /\/node_modules\/uqr\//u,
  queries: /\/cli\/src\/(?:(?!mesh)[a-z]+-commands|daemon-client|open-api)\.ts$/u,
  engineInstall: /\/engine\/src\/(?:install-from|download|verify|build|unpack)-[a-z-]+\.ts$/u,
  doctor: /\/cli\/src\/doctor\.ts$/u,
} as const;

const root = join(import.meta.dirname, '..', '..');
const preload = pathToFileURL(join(root, 'test', 'fixtures', 'note-modules.ts'));

type Part = keyof typeof heavy;

const loadedSchema = z.array(z.string());

/**
 * Runs something that ends with each variable set that it is given, and resolves with what the process has loaded:
 * source by source, unless it may run from the bundle.
 */
async function loadedBy(
  t: ExecutionContext,
  run: (variables: Readonly<Record<string, string>>) => Promise<unknown>,
  {bundle = false} = {},
): Promise<readonly string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-loaded-'));
  t.teardown(async () => rm(folder, {recursive: true, force: true}));
  const file = join(folder, 'loaded.json');
  const from = bundle ? {HEARSAY_SOURCES: '', NODE_V8_COVERAGE: ''} : {HEARSAY_SOURCES: '1'};
  await run({...from, TEST_LOADED_FILE: file, NODE_OPTIONS: `--import ${preload.href}`});
  return loadedSchema.parse(JSON.parse(await readFile(file, 'utf8')));
}

function parts(loaded: readonly string[]): readonly string[] {
  return Object.entries(heavy).flatMap(([part, pattern]) => (loaded.some(each => pattern.test(each)) ? [part] : []));
}

test.serial('`hearsay version` loads none of the heavy parts', async t => {
  const loaded = await loadedBy(t, async variables => runCli(['version'], {...process.env, ...variables}));
  t.true(loaded.some(each => each.endsWith('/cli/src/main.ts')));
  t.deepEqual(parts(loaded), []);
});

test.serial('a daemon that starts and ends loads only the heavy parts that it runs with', async t => {
  const loaded = await loadedBy(t, async variables => (await startDaemon(t, {variables})).stop());
  const own: readonly Part[] = ['daemon', 'libp2p', 'httpServer', 'log', 'config'];
  t.deepEqual(parts(loaded), own);
});

test.serial('a command that asks a daemon loads nothing of a daemon', async t => {
  const {url} = await startDaemon(t);
  const variables = {...process.env, HEARSAY_HOST: url};
  const loaded = await loadedBy(t, async more => runCli(['nodes'], {...variables, ...more}));
  t.deepEqual(parts(loaded), ['queries'] satisfies readonly Part[]);
});

test.serial('a daemon and a command run from the bundle, without a single source file', async t => {
  const made = spawnSync(process.execPath, [join(root, 'scripts', 'make-bundle.mjs')], {encoding: 'utf8'});
  t.is(made.status, 0, made.stderr);
  const daemon = async (variables: Readonly<Record<string, string>>): Promise<unknown> =>
    (await startDaemon(t, {variables})).stop();
  const command = async (variables: Readonly<Record<string, string>>): Promise<unknown> =>
    runCli(['version'], {...process.env, ...variables});
  const [ofDaemon, ofCommand] = [await loadedBy(t, daemon, {bundle: true}), await loadedBy(t, command, {bundle: true})];
  for (const loaded of [ofDaemon, ofCommand]) {
    t.true(loaded.some(each => each.endsWith('/main.mjs')));
    t.deepEqual(
      loaded.filter(each => each.endsWith('.ts') || each.includes('/node_modules/zod/')),
      [],
    );
  }
  t.true(ofDaemon.some(each => each.includes('/start-serving-')));
  t.false(ofCommand.some(each => each.includes('/start-serving-')));
});
