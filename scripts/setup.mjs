// Runs before `npm start`, `npm test` and `npm run demo`: installs the dependencies when package-lock.json has
// changed since the last time, and bundles the sources when one of them has; else does nothing in some 50 ms. Plain
// JavaScript without dependencies for Node 18 and newer, because it runs before there is anything else.
import {spawnSync} from 'node:child_process';
import {createHash} from 'node:crypto';
import {existsSync, readFileSync, writeFileSync} from 'node:fs';
import {delimiter, dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const modules = join(root, 'node_modules');
const stamp = join(modules, '.hearsay-setup');
const node24 = join(modules, 'node', 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
const lockHash = createHash('sha256')
  .update(readFileSync(join(root, 'package-lock.json')))
  .digest('hex');

const isInstalled = existsSync(stamp) && readFileSync(stamp, 'utf8').trim() === lockHash && nodeVersion() >= 24;
process.exitCode = isInstalled ? 0 : install();
if (process.exitCode === 0) await bundle();

/** Without a bundle everything works, only slower: no reason to stop. */
async function bundle() {
  try {
    const {makeBundle} = await import('./make-bundle.mjs');
    await makeBundle(root);
  } catch (error) {
    console.error(`setup: the sources cannot be bundled, so hearsay will start more slowly: ${error.message}`);
  }
}

function install() {
  console.error('setup: installing the dependencies with npm ci (only when package-lock.json has changed) …');
  const startedMs = Date.now();
  const npm = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: {...process.env, PATH: pathWithout(join(modules, '.bin'))}, // npm removes the Node that it would find there
    shell: process.platform === 'win32', // npm is a script there
  });
  if (npm.error !== undefined) {
    return fail(
      `npm could not be started (${npm.error.message}). Install Node.js with npm: https://nodejs.org/en/download`,
    );
  }
  if (npm.status !== 0) {
    return fail('npm ci failed, see above. It needs the npm registry: check the network and the proxy with: npm ping');
  }
  if (nodeVersion() < 24) {
    return fail(`${node24} does not run, so this machine has no Node 24. Is its platform one of https://nodejs.org's?`);
  }
  writeFileSync(stamp, `${lockHash}\n`);
  console.error(`setup: done in ${Math.round((Date.now() - startedMs) / 1000)} s`);
  return 0;
}

/** Major version of the Node in node_modules; 0 when it does not run. */
function nodeVersion() {
  const {stdout} = spawnSync(node24, ['--version'], {encoding: 'utf8'});
  return Number(/^v(\d+)\./.exec(stdout ?? '')?.[1] ?? 0);
}

function pathWithout(folder) {
  const path = process.env.PATH ?? '';
  return path
    .split(delimiter)
    .filter(entry => entry !== folder)
    .join(delimiter);
}

function fail(message) {
  console.error(`setup: ${message}`);
  return 1;
}
