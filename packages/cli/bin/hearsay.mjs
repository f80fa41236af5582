#!/usr/bin/env node
// Starts hearsay under Node 24, which runs its TypeScript as it is. Plain JavaScript for any Node: an older one hands over to
// the Node that `npm install` has put into node_modules.
import {spawn} from 'node:child_process';
import module from 'node:module';
import {constants} from 'node:os';
import {fileURLToPath} from 'node:url';

if (Number(process.versions.node.split('.')[0]) >= 24) {
  // Threads for files, four by default: calls to a network drive that is away occupy two of them for as long as it is.
  process.env.UV_THREADPOOL_SIZE ??= '16';
  module.enableCompileCache(); // later starts need not compile the sources again
  await import('../src/main.ts');
} else {
  handOver();
}

function handOver() {
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
