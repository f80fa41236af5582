import {spawnSync} from 'node:child_process';
import {chmod, copyFile, mkdir, mkdtemp, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {delimiter, join} from 'node:path';
import test from 'ava';
import type {ExecutionContext} from 'ava';

const script = join(import.meta.dirname, '..', '..', 'scripts', 'setup.mjs');

interface Checkout {
  readonly root: string;
  readonly setup: () => {
    readonly status: number | null;
    readonly stderr: string;
    readonly stdout: string;
  };
  /** What Node takes of the processor with these arguments, and all that it starts; others do not count. */
  readonly processorMs: (...args: readonly string[]) => number;
  readonly writeLock: (text: string) => Promise<void>;
  /** The body of what makes the bundle; nothing unless written. */
  readonly writeBundling: (body: string) => Promise<void>;
}

/** `npm` is the given shell script, run in the checkout; undefined: there is none. */
async function checkout(t: ExecutionContext, npm: string | undefined): Promise<Checkout> {
  const root = await mkdtemp(join(tmpdir(), 'hearsay-setup-'));
  t.teardown(async () => rm(root, {recursive: true}));
  await mkdir(join(root, 'scripts'));
  await mkdir(join(root, 'tools'));
  await copyFile(script, join(root, 'scripts', 'setup.mjs'));
  await writeFile(join(root, 'package-lock.json'), '{}');
  if (npm !== undefined) await writeFile(join(root, 'tools', 'npm'), `#!/bin/sh\necho "npm $*"\n${npm}\n`);
  if (npm !== undefined) await chmod(join(root, 'tools', 'npm'), 0o755);
  const writeBundling = async (body: string): Promise<void> =>
    writeFile(join(root, 'scripts', 'make-bundle.mjs'), `export async function makeBundle(root) {${body}}`);
  await writeBundling('');
  const path = [join(root, 'tools'), ...(npm === undefined ? [] : ['/usr/bin', '/bin'])].join(delimiter);
  return {
    root,
    writeBundling,
    writeLock: text => writeFile(join(root, 'package-lock.json'), text),
    setup() {
      const args = [join(root, 'scripts', 'setup.mjs')];
      const {status, stderr, stdout} = spawnSync(process.execPath, args, {encoding: 'utf8', env: {PATH: path}});
      return {status, stderr, stdout};
    },
    processorMs(...args) {
      const timed = ['-c', '"$@" >/dev/null && times', 'sh', process.execPath, ...args];
      const {stdout} = spawnSync('/bin/sh', timed, {encoding: 'utf8', env: {PATH: path}, cwd: root});
      const [user, system] = (stdout.trimEnd().split('\n')[1] ?? '').split(' ').map(secondsOf);
      return 1000 * ((user ?? NaN) + (system ?? NaN));
    },
  };
}

/** Of `0m0.123s`, as the shell says it. */
function secondsOf(text: string): number {
  const [, minutes, seconds] = /^(\d+)m([\d.]+)s$/u.exec(text) ?? [];
  return 60 * Number(minutes) + Number(seconds);
}

/** What `npm ci` leaves behind: a new node_modules with a Node of this version. */
const installs = (version: string): string =>
  `rm -rf node_modules; mkdir -p node_modules/node/bin
printf '#!/bin/sh\\necho ${version}\\n' > node_modules/node/bin/node; chmod +x node_modules/node/bin/node`;

test('setup installs once, and again only after package-lock.json has changed', async t => {
  const {setup, writeLock} = await checkout(t, installs('v24.1.0'));
  const first = setup();
  t.is(first.status, 0, first.stderr);
  t.regex(first.stdout, /npm ci /u);
  t.like(setup(), {status: 0, stdout: '', stderr: ''});
  await writeLock('{"changed": true}');
  t.regex(setup().stdout, /npm ci /u);
  t.like(setup(), {status: 0, stdout: '', stderr: ''});
});

test('setup takes no time to speak of when there is nothing to do', async t => {
  const {setup, processorMs} = await checkout(t, installs('v24.1.0'));
  setup();
  const idle = Array.from({length: 5}, () => processorMs('scripts/setup.mjs'));
  const bare = Array.from({length: 5}, () => processorMs('-e', '0'));
  t.true(
    Math.min(...idle) - Math.min(...bare) < 100,
    `${Math.min(...idle)} ms of the processor, an empty script ${Math.min(...bare)} ms`,
  );
});

test('setup installs again when the Node in node_modules does not run', async t => {
  const {root, setup} = await checkout(t, installs('v24.1.0'));
  setup();
  await rm(join(root, 'node_modules', 'node', 'bin', 'node'));
  t.regex(setup().stdout, /npm ci /u);
});

test('setup without npm says so and fails', async t => {
  const {setup} = await checkout(t, undefined);
  const {status, stderr} = setup();
  t.is(status, 1);
  t.regex(stderr, /npm could not be started .* Install Node\.js with npm/u);
});

test('setup names the registry when npm ci fails, and tries again the next time', async t => {
  const {setup} = await checkout(t, 'exit 1');
  for (const attempt of [setup(), setup()]) {
    t.is(attempt.status, 1);
    t.regex(attempt.stderr, /npm ci failed, see above\. .* registry/u);
  }
});

test('setup fails when the installed Node is too old', async t => {
  const {setup} = await checkout(t, installs('v20.1.0'));
  const {status, stderr} = setup();
  t.is(status, 1);
  t.regex(stderr, /has no Node 24/u);
});

test('setup bundles the sources once everything is installed, and not when that has failed', async t => {
  const {setup, writeBundling} = await checkout(t, installs('v24.1.0'));
  await writeBundling('console.log("bundled", root)');
  const first = setup();
  t.regex(first.stdout, /npm ci [^]*bundled \/./u);
  t.regex(setup().stdout, /^bundled \/./u);
  const failing = await checkout(t, 'exit 1');
  await failing.writeBundling('console.log("bundled", root)');
  t.notRegex(failing.setup().stdout, /bundled/u);
});

test('setup goes on when the sources cannot be bundled, and says what that means', async t => {
  const {setup, writeBundling} = await checkout(t, installs('v24.1.0'));
  await writeBundling('throw new Error("no esbuild for this machine")');
  const {status, stderr} = setup();
  t.is(status, 0);
  t.regex(stderr, /cannot be bundled, so hearsay will start more slowly: no esbuild for this machine/u);
});
