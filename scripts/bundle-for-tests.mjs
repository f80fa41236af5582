// Every test file is a process of its own, and looks for a thousand small modules of ava, libp2p and others before it
// begins. Here a few large ones are made of them, which `bundled-modules.mjs` puts in their place. Our own sources stay
// as they are.
import {createHash} from 'node:crypto';
import {
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import {findPackageJSON} from 'node:module';
import {basename, dirname, join, relative} from 'node:path';
import {fileURLToPath, pathToFileURL} from 'node:url';
import {stampOf} from '../packages/cli/bin/find-bundle.mjs';
import {inAscii, requireOfNode, withoutLanguages} from './make-bundle.mjs';

const root = dirname(import.meta.dirname);

/** Those of other states of a checkout, to which somebody may return. */
const keptMax = 3;

/** What ava starts a test file with. It shares its state with what the tests import of ava. */
const avaWorker = 'ava/lib/worker/base.js';

/** What an import or export names: a package, which is neither Node's nor one of ours. */
const imported = /^(?:import|export|\}) (?!type )(?:[^'\n]*from )?'((?!node:|@hearsay\/)[@a-z][\w@./-]*)';$/gmu;

/**
 * The note that tells which module is bundled where. It is made unless there is one for what our files import now, and
 * for what npm has installed now. Rejects when that is impossible.
 */
export async function bundleForTests() {
  const specifiers = importedByUs();
  const bundles = join(root, 'node_modules', '.cache', 'test-modules');
  const folder = join(bundles, keyOf(specifiers));
  const note = join(folder, 'modules.json');
  if (existsSync(note)) return note;
  const unfinished = `${folder}-${process.pid}`;
  try {
    await makeBundles(specifiers, folder, unfinished);
    if (!existsSync(note)) renameSync(unfinished, folder); // nobody finds it before it is whole
  } finally {
    rmSync(unfinished, {recursive: true, force: true});
  }
  removeOld(bundles);
  return note;
}

function importedByUs() {
  const found = new Set();
  for (const file of globSync('{packages/*/src,test,scripts}/**/*.ts', {cwd: root})) {
    for (const [, specifier] of readFileSync(join(root, file), 'utf8').matchAll(imported)) found.add(specifier);
  }
  return [...found].toSorted((a, b) => (a < b ? -1 : 1));
}

/** Changes with all that decides what the bundle holds. What lies in node_modules npm alone changes, and notes it. */
function keyOf(specifiers) {
  const makers = ['scripts/bundle-for-tests.mjs', 'scripts/make-bundle.mjs', 'node_modules/.package-lock.json'];
  const stamps = makers.map(file => stampOf(join(root, file)));
  return createHash('sha256')
    .update(JSON.stringify([root, specifiers, stamps]))
    .digest('hex')
    .slice(0, 16);
}

/**
 * ava apart from the rest, under a path that it knows as its own, because it leaves its own lines out of what it shows
 * of an error.
 */
async function makeBundles(specifiers, folder, unfinished) {
  const {ava = [], others = []} = Object.groupBy(specifiers, name => (name.split('/')[0] === 'ava' ? 'ava' : 'others'));
  const files = [
    ...(await bundle([avaWorker, ...ava], join(folder, 'node_modules', 'ava', 'lib'))),
    ...(await bundle(others, join(folder, 'others'))),
  ];
  for (const {path, text} of files) {
    const place = join(unfinished, relative(folder, path));
    mkdirSync(dirname(place), {recursive: true});
    writeFileSync(place, inAscii(text));
  }
  const modules = files.filter(({module}) => module !== undefined);
  const urls = modules.map(({path, module}) => [pathToFileURL(module).href, pathToFileURL(path).href]);
  writeFileSync(join(unfinished, 'package.json'), '{"type": "module"}');
  writeFileSync(join(unfinished, 'modules.json'), JSON.stringify(urls));
}

/** The files of one bundle, those of entries with the module that they stand for. */
async function bundle(specifiers, outdir) {
  const {build} = await import('esbuild'); // of no use while there is a bundle
  const entries = new Map();
  for (const [index, specifier] of specifiers.entries()) entries.set(`module-${index}`, fileOf(specifier));
  const {outputFiles} = await build({
    absWorkingDir: root,
    entryPoints: Object.fromEntries([...entries].map(([name, file]) => [name, `entry:${file}`])),
    outdir,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    legalComments: 'none',
    banner: {js: requireOfNode},
    write: false,
    logLevel: 'silent',
    plugins: [whole, inPlace, withoutLanguages],
  });
  return outputFiles.map(({path, text}) => ({path, text, module: entries.get(basename(path, '.js'))}));
}

function fileOf(specifier) {
  if (specifier === avaWorker) return join(root, 'node_modules', avaWorker); // it is not for others to import
  return fileURLToPath(import.meta.resolve(specifier));
}

/** An entry exports what Node would say that its module does, which esbuild does not know of CommonJS. */
const whole = {
  name: 'whole',
  setup({onResolve, onLoad}) {
    onResolve({filter: /^entry:/}, ({path}) => {
      const file = path.slice('entry:'.length);
      return isCommonJs(file) ? {path: file, namespace: 'common-js'} : {path: file};
    });
    onLoad({filter: /.*/, namespace: 'common-js'}, async ({path}) => {
      const names = Object.keys(await import(pathToFileURL(path).href)).filter(name => /^[a-z_$][\w$]*$/iu.test(name));
      const named = names.filter(name => name !== 'default' && name !== 'module');
      const lines = named.map((name, index) => `const name${index} = all.${name};\nexport {name${index} as ${name}};`);
      return {
        contents: [`const all = require(${JSON.stringify(path)});`, 'export default all;', ...lines].join('\n'),
        resolveDir: dirname(path),
      };
    });
  },
};

function isCommonJs(file) {
  if (/\.[cm]js$/u.test(file)) return file.endsWith('.cjs');
  const described = findPackageJSON(pathToFileURL(file));
  return described === undefined || JSON.parse(readFileSync(described, 'utf8')).type !== 'module';
}

/** Modules that look for files beside them find them where they are. */
const inPlace = {
  name: 'in-place',
  setup({onLoad}) {
    onLoad({filter: /\.m?js$/, namespace: 'file'}, ({path}) => {
      const text = readFileSync(path, 'utf8');
      if (!text.includes('import.meta')) return undefined;
      const contents = text
        .replaceAll('import.meta.url', () => JSON.stringify(pathToFileURL(path).href))
        .replaceAll('import.meta.dirname', () => JSON.stringify(dirname(path)));
      return {loader: 'js', contents};
    });
  },
};

/** The last ones that were made. */
function removeOld(bundles) {
  const folders = readdirSync(bundles).map(name => ({
    folder: join(bundles, name),
    madeMs: statSync(join(bundles, name)).mtimeMs,
  }));
  for (const {folder} of folders.toSorted((a, b) => b.madeMs - a.madeMs).slice(keptMax)) {
    rmSync(folder, {recursive: true, force: true});
  }
}
