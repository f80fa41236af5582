import {spawn} from 'node:child_process';
import {join} from 'node:path';
import {createInterface} from 'node:readline';
import {cacheFolder, prepareTests} from './prepare-tests.ts';
import {TestCounter} from './count-tests.ts';

/**
 * What `npm test` runs: makes sure of a llama-server and of tiny models, both kept outside the checkout, then runs
 * ava on the given files, or on all. The last line is `N passed, N failed`; a file that crashes counts as failed.
 */

const root = join(import.meta.dirname, '..');

const startedMs = performance.now();
const environment = {
  ...process.env,
  ...(await prepareTests()),
  ...compiledOnce(),
};
console.log(`prepared in ${seconds(startedMs)}`);
process.exitCode = await runAva(process.argv.slice(2), environment);

async function runAva(files: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const avaStartedMs = performance.now();
  const ava = join(root, 'node_modules', 'ava', 'entrypoints', 'cli.js');
  const colours = process.stdout.isTTY && env['NO_COLOR'] === undefined ? {FORCE_COLOR: '1'} : {};
  const child = spawn(process.execPath, [ava, ...files], {
    cwd: root,
    env: {...env, ...colours},
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<number>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', code => resolve(code ?? 1));
  });
  const counter = new TestCounter();
  for await (const line of createInterface({input: child.stdout})) {
    console.log(line);
    counter.line(line);
  }
  const {passed, failed} = counter.counts(await ended);
  console.log(`\nran in ${seconds(avaStartedMs)}`);
  console.log(`${passed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

/** Every test file is a process of its own, which need not compile the same sources again; coverage must, to count. */
function compiledOnce(): NodeJS.ProcessEnv {
  if (process.env['NODE_V8_COVERAGE'] !== undefined) return {};
  return {NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? join(cacheFolder, 'tests', 'compiled')};
}

function seconds(sinceMs: number): string {
  return `${((performance.now() - sinceMs) / 1000).toFixed(1)} s`;
}
