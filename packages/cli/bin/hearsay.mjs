#!/usr/bin/env node
// Starts hearsay under Node 24, which runs its TypeScript as it is. Plain JavaScript for any Node: an older one hands over to
// the Node that `npm install` has put into node_modules.
import module from 'node:module';
import {constants} from 'node:os';
import {dirname, join} from 'node:path';
import {fileURLToPath, pathToFileURL} from 'node:url';

/**
 * Room for short-lived objects, in MiB. V8 alone would give them a hundred before it looks which are still used; a
 * daemon has no use for that, and runs for months beside models that have.
 */
const shortLived = '--max-semi-space-size=8';

/**
 * What is smaller than this many bytes comes from memory that the C library keeps together, and gives back when the end of
 * it is free. Left alone it learns from large requests to keep ever more, 6 MB in a daemon at rest. Children, which have
 * other needs, are not told.
 */
const largeFrom = {MALLOC_MMAP_THRESHOLD_: '1048576'};

/** By then a daemon has started and compiled nearly all that it needs. */
const startedAfterMs = 5_000;

if (Number(process.versions.node.split('.')[0]) >= 24) {
  const isDaemon = ['serve', 'start'].includes(process.argv[2]);
  if (isDaemon && !process.execArgv.includes(shortLived)) restartWith(shortLived);
  for (const [name, value] of Object.entries(largeFrom)) if (process.env[name] === value) delete process.env[name];
  // Threads for files, four by default: calls to a network drive that is away occupy two of them for as long as it is.
  process.env.UV_THREADPOOL_SIZE ??= '16';
  const bundle = await currentBundle();
  // Later starts need not compile the same again. What belongs to a bundle goes with it.
  module.enableCompileCache(bundle === undefined ? undefined : join(dirname(bundle), 'compiled'));
  // Node alone keeps it at a clean end, which may be months away or never come. What is kept is not written again.
  if (isDaemon) setTimeout(() => module.flushCompileCache(), startedAfterMs).unref();
  if (bundle === undefined) await import('./quick-imports.mjs');
  await import(bundle === undefined ? '../src/main.ts' : pathToFileURL(bundle).href);
} else {
  await handOver();
}

/** Becomes the same process with one more flag, which V8 takes at its start only. Where that is impossible it goes on. */
function restartWith(flag) {
  if (process.platform === 'win32' || process.execve === undefined) return;
  process.execve(process.execPath, [process.execPath, flag, ...process.execArgv, ...process.argv.slice(1)], {
    ...largeFrom,
    ...process.env,
  });
}

/** None where somebody wants the sources as they are: to see what runs, or how much of them. */
async function currentBundle() {
  if (process.env.HEARSAY_SOURCES || process.env.NODE_V8_COVERAGE) return undefined;
  const {findBundle} = await import('./find-bundle.mjs');
  return findBundle(join(import.meta.dirname, '..', '..', '..'));
}

async function handOver() {
  const {spawn} = await import('node:child_process'); // for nothing else, and 4 ms of every start
  const node = fileURLToPath(new URL('../../../node_modules/node/bin/node', import.meta.url));
  let child;
  // Before the start, so that no signal finds this process without a handler while the other one runs already.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR2']) {
    process.on(signal, () => child?.kill(signal));
  }
  child = spawn(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], {stdio: 'inherit'});
  child.on('error', error => {
    console.error(`hearsay needs Node 24 or newer, and cannot run ${node} (${error.message}); run: npm install`);
    process.exitCode = 1;
  });
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? 128 + (constants.signals[signal] ?? 0);
  });
}
