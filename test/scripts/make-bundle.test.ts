import {spawnSync} from 'node:child_process';
import {existsSync} from 'node:fs';
import {
  copyFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  symlink,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {fileURLToPath, pathToFileURL} from 'node:url';
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
async function checkout(t: ExecutionContext, name = 'hearsay'): Promise<Checkout> {
  const parent = await realpath(await mkdtemp(join(tmpdir(), 'hearsay-bundle-')));
  t.teardown(async () => rm(parent, {recursive: true}));
  const root = join(parent, name);
  for (const folder of ['packages/cli/src', 'node_modules', 'scripts'])
    await mkdir(join(root, folder), {recursive: true});
  await copyFile(join(repository, 'scripts', 'make-bundle.mjs'), join(root, 'scripts', 'make-bundle.mjs'));
  const source = (file: string): string => join(root, 'packages', 'cli', 'src', file);
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
  return {source, ...at(root)};
}

function at(root: string): Omit<Checkout, 'source'> {
  return {
    root,
    make: () => evaluate(`await (await import('${maker}')).makeBundle(${JSON.stringify(root)})`).stderr,
    find: () =>
      evaluate(`console.log((await import('${finder}')).findBundle(${JSON.stringify(root)}) ?? '')`).stdout.trim(),
    async bundles() {
      const folder = join(root, '.cache', 'bundles');
      const entries = existsSync(folder) ? await readdir(folder, {withFileTypes: true}) : [];
      return entries.filter(entry => entry.isDirectory()).map(({name}) => name);
    },
  };
}

async function age(file: string, seconds: number): Promise<void> {
  const time = new Date(Date.now() - 1000 * seconds);
  await utimes(file, time, time);
}

function run(file: string): string {
  return spawnSync(process.execPath, [file], {encoding: 'utf8'}).stdout;
}

function evaluate(code: string): {readonly stdout: string; readonly stderr: string} {
  return spawnSync(process.execPath, ['--input-type=module', '-e', code], {encoding: 'utf8'});
}

test('a bundle does what its sources do, and they find themselves where they lie', async t => {
  const {source, make, find} = await checkout(t, `it's a $& $$ “hear say”`);
  t.is(find(), '');
  t.is(make(), '');
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

test('what a bundle would get wrong is not bundled, and nothing of the try is left', async t => {
  const {root, source, make, find, bundles} = await checkout(t);
  await mkdir(join(root, 'elsewhere'));
  await writeFile(join(root, 'elsewhere', 'index.js'), 'export const late = 1;');
  await symlink(join(root, 'elsewhere'), join(root, 'node_modules', 'shared'));
  await writeFile(source('late.ts'), `export {late} from 'shared/index.js';`);
  t.regex(make(), /elsewhere\/index\.js is not a part of this checkout/u);
  await writeFile(source('late.ts'), `import './none.ts';`);
  t.regex(make(), /none\.ts/u);
  t.is(find(), '');
  t.deepEqual(await bundles(), []);
});

test('a source that changes while it is bundled is not taken for bundled', async t => {
  const {root, source, find, bundles} = await checkout(t);
  const esbuild = import.meta.resolve('esbuild');
  await mkdir(join(root, 'node_modules', 'esbuild'));
  await writeFile(
    join(root, 'node_modules', 'esbuild', 'index.js'),
    `const {appendFileSync} = require('node:fs');
    exports.build = async options => {
      const {default: {build}} = await import('${esbuild}');
      const built = await build(options);
      appendFileSync(${JSON.stringify(source('late.ts'))}, '// more');
      return built;
    };`,
  );
  await mkdir(join(root, 'packages', 'cli', 'bin'));
  await copyFile(fileURLToPath(finder), join(root, 'packages', 'cli', 'bin', 'find-bundle.mjs'));
  const {stderr} = spawnSync(process.execPath, [join(root, 'scripts', 'make-bundle.mjs')], {encoding: 'utf8'});
  t.regex(stderr, /late\.ts was changed meanwhile/u);
  t.is(find(), '');
  t.deepEqual(await bundles(), []);
});

test('a bundle is in ASCII, and letters beyond it mean the same', async t => {
  const {source, make, find} = await checkout(t);
  const letters = String.raw`/[µμ–]{3}/u.test('µμ–') && /^.$/u.test('😀') && !/^[😀]$/u.test('μ') && 'µ😀'`;
  await writeFile(source('late.ts'), `/** 0…1 */\nexport const late: unknown = ${letters};`);
  t.is(make(), '');
  t.regex(run(find()), / µ😀\n$/u);
  t.is(run(find()), run(source('main.ts')));
  t.notRegex(await readFile(find(), 'latin1'), /[^\0-\x7F]/u);
});

test('a bundle of a checkout that has moved is not found, and setup makes another one', async t => {
  const {root, make} = await checkout(t);
  make();
  await rename(root, `${root}-moved`);
  const moved = at(`${root}-moved`);
  t.is(moved.find(), '');
  t.is(moved.make(), '');
  t.regex(run(moved.find()), /hearsay-moved\/packages\/cli\/src .*late/u);
});

test('a bundle that has lost or cut a part is not run, and setup makes another one', async t => {
  const {make, find} = await checkout(t);
  for (const damage of ['cut', 'lost'] as const) {
    make();
    const damaged = find();
    if (damage === 'cut') await truncate(damaged, 0);
    else await rm(damaged);
    t.is(find(), '', damage);
    t.is(make(), '', damage);
    t.regex(run(find()), /late/u);
  }
});

test('neither stray files among the packages nor a tsconfig.json keep a bundle from being made', async t => {
  const {root, make, find} = await checkout(t);
  await writeFile(join(root, 'packages', '.DS_Store'), '');
  await mkdir(join(root, 'packages', 'gone'));
  await writeFile(join(root, 'tsconfig.json'), '{"compilerOptions": {"paths": {"node:path": ["./none"]}}}');
  t.is(make(), '');
  t.regex(run(find()), /late/u);
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
