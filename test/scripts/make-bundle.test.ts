import {spawnSync} from 'node:child_process';
import {copyFile, mkdir, mkdtemp, readdir, realpath, rm, utimes, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';
import test from 'ava';
import type {ExecutionContext} from 'ava';

const repository = join(import.meta.dirname, '..', '..');
const maker = pathToFileURL(join(repository, 'scripts', 'make-bundle.mjs')).href;
const finder = pathToFileURL(join(repository, 'packages', 'cli', 'bin', 'find-bundle.mjs')).href;

interface Checkout {
  readonly root: string;
  readonly source: (name: string) => string;
  /** Makes the bundle; what it complains about, else ''. */
  readonly make: () => string;
  /** The current bundle, '' when there is none. */
  readonly find: () => string;
  readonly bundles: () => Promise<readonly string[]>;
}

/** A program of two files, the second of which is loaded late, written some seconds ago. */
async function checkout(t: ExecutionContext): Promise<Checkout> {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'hearsay-bundle-')));
  t.teardown(async () => rm(root, {recursive: true}));
  for (const folder of ['packages/cli/src', 'node_modules', 'scripts'])
    await mkdir(join(root, folder), {recursive: true});
  await copyFile(join(repository, 'scripts', 'make-bundle.mjs'), join(root, 'scripts', 'make-bundle.mjs'));
  const source = (name: string): string => join(root, 'packages', 'cli', 'src', name);
  await writeFile(join(root, 'packages', 'cli', 'package.json'), '{"type": "module"}');
  await writeFile(join(root, 'node_modules', '.package-lock.json'), '{}');
  await writeFile(
    source('main.ts'),
    `const {late} = await import('./late.ts');\nconsole.log(import.meta.dirname, new URL('.', import.meta.url).href, late);`,
  );
  await writeFile(source('late.ts'), `import {sep} from 'node:path';\nexport const late: string = 'late' + sep;`);
  for (const file of [source('main.ts'), source('late.ts')]) await age(file, 60);
  for (const file of ['packages/cli/package.json', 'node_modules/.package-lock.json', 'scripts/make-bundle.mjs'])
    await age(join(root, file), 60);
  return {
    root,
    source,
    make: () => evaluate(`await (await import('${maker}')).makeBundle('${root}')`).stderr,
    find: () => evaluate(`console.log((await import('${finder}')).findBundle('${root}') ?? '')`).stdout.trim(),
    async bundles() {
      const entries = await readdir(join(root, 'node_modules', '.cache', 'hearsay'), {withFileTypes: true});
      return entries.filter(entry => entry.isDirectory()).map(({name}) => name);
    },
  };
}

async function age(file: string, seconds: number): Promise<void> {
  const at = new Date(Date.now() - 1000 * seconds);
  await utimes(file, at, at);
}

function evaluate(code: string): {readonly stdout: string; readonly stderr: string} {
  return spawnSync(process.execPath, ['--input-type=module', '-e', code], {encoding: 'utf8'});
}

test('a bundle does what its sources do, and they find themselves where they lie', async t => {
  const {source, make, find} = await checkout(t);
  t.is(find(), '');
  t.is(make(), '');
  const run = (file: string): string => spawnSync(process.execPath, [file], {encoding: 'utf8'}).stdout;
  t.regex(run(source('main.ts')), /late\//u);
  t.is(run(find()), run(source('main.ts')));
});

test('a bundle is made once, and again when a source has changed; until then nobody finds the old one', async t => {
  const {root, source, make, find} = await checkout(t);
  make();
  const first = find();
  t.is(make(), '');
  t.is(find(), first);
  const lock = join(root, 'node_modules', '.package-lock.json');
  const changes: Readonly<Record<string, () => Promise<void>>> = {
    'another text': async () => {
      await writeFile(source('late.ts'), `export const late: string = 'later';`);
      await age(source('late.ts'), 20);
    },
    'another time': async () => age(source('main.ts'), 30),
    'other dependencies': async () => {
      await writeFile(lock, '{"changed": true}');
      await age(lock, 20);
    },
    'no bundles any more': async () => rm(join(first, '..', '..'), {recursive: true}),
  };
  for (const [what, change] of Object.entries(changes)) {
    await change();
    t.is(find(), '', what);
    t.is(make(), '', what);
    t.not(find(), '', what);
    t.not(find(), first, what);
  }
  await rm(source('late.ts'));
  t.is(find(), '');
  t.regex(make(), /late\.ts/u);
});

test('a source that changes while it is bundled is not taken for bundled', async t => {
  const {source, make, find} = await checkout(t);
  await age(source('late.ts'), -60);
  t.regex(make(), /late\.ts was changed meanwhile/u);
  t.is(find(), '');
});

test('daemons that still run from an older bundle keep theirs, but only five are kept', async t => {
  const {source, make, find, bundles} = await checkout(t);
  const seen: string[] = [];
  for (let n = 7; n > 0; n -= 1) {
    await age(source('main.ts'), n);
    t.is(make(), '');
    seen.push(find());
  }
  const kept = await bundles();
  t.is(kept.length, 5);
  t.true(seen.slice(-5).every(file => kept.some(name => file.includes(name))));
});
