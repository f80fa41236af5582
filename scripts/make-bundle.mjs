// Makes one program of the thousand files that hearsay consists of, ours and those of its dependencies: a start takes
// half of the time, a daemon 10 MB less. It is a cache that nobody needs, and misleads nobody who edits a source.
// Plain JavaScript for Node 18 and newer, because setup runs it.
import {existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync} from 'node:fs';
import {basename, dirname, join, relative, sep} from 'node:path';
import {fileURLToPath, pathToFileURL} from 'node:url';
import {bundlesOf, findBundle, stampOf} from '../packages/cli/bin/find-bundle.mjs';

/** A daemon loads some parts only when somebody asks for them, so those of running ones must stay; 5 MB each. */
const keptMax = 5;

/** CommonJS modules in the bundle find Node's own by it. */
export const requireOfNode =
  "import {createRequire} from 'node:module';\nconst require = createRequire(import.meta.url);";

/** As Node strips types, whatever a tsconfig.json says. */
const plainTypes = {compilerOptions: {target: 'esnext', verbatimModuleSyntax: true}};

/** Makes the bundle of a checkout unless it is there and current. Rejects when that is impossible. */
export async function makeBundle(root) {
  if (findBundle(root) !== undefined) return;
  const {build} = await import('esbuild'); // of no use to the many set-ups that end above
  const own = ownSources(root);
  const {outputFiles, metafile} = await build({
    absWorkingDir: root,
    entryPoints: {main: 'packages/cli/src/main.ts'},
    outdir: bundlesOf(root),
    outExtension: {'.js': '.mjs'},
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    tsconfigRaw: plainTypes,
    legalComments: 'none',
    banner: {js: requireOfNode},
    write: false,
    metafile: true,
    logLevel: 'silent',
    plugins: [own.inPlace, withoutLanguages],
  });
  const sources = sourcesOf(root, own.stamps, Object.keys(metafile.inputs));
  for (const [file, stamp] of sources) {
    if (stampOf(join(root, file)) !== stamp) throw new Error(`${file} was changed meanwhile`);
  }
  const files = outputFiles.map(({path, text}) => [basename(path), inAscii(text)]);
  keep(root, {root, main: 'main.mjs', sources, parts: files.map(([name, {length}]) => [name, length])}, files);
}

/**
 * Notes what each of our sources was when it was read. Those that look for files beside them find them where they are.
 */
function ownSources(root) {
  const stamps = new Map();
  const inPlace = {
    name: 'in-place',
    setup({onLoad}) {
      onLoad({filter: /\.ts$/}, ({path}) => {
        stamps.set(relative(root, path).replaceAll(sep, '/'), stampOf(path));
        const contents = readFileSync(path, 'utf8')
          .replaceAll('import.meta.url', () => JSON.stringify(pathToFileURL(path).href))
          .replaceAll('import.meta.dirname', () => JSON.stringify(dirname(path)));
        return {loader: 'ts', contents};
      });
    },
  };
  return {stamps, inPlace};
}

/**
 * All that decides what the bundle holds, each with its stamp: our files that were read, and what they were found by.
 * What lies in node_modules npm alone changes, and notes it.
 */
function sourcesOf(root, stamps, inputs) {
  const foreign = inputs.find(file => !/^(?:packages|node_modules)\/|^no-languages:/.test(file));
  if (foreign !== undefined) throw new Error(`${foreign} is not a part of this checkout`);
  const packages = readdirSync(join(root, 'packages')).map(name => `packages/${name}/package.json`);
  const others = ['node_modules/.package-lock.json', 'scripts/make-bundle.mjs', ...packages];
  const present = others.filter(file => existsSync(join(root, file)));
  return [...stamps, ...present.map(file => [file, stampOf(join(root, file))])];
}

/** Zod brings its messages in fifty languages, which are half of it; ours is English. As `quick-imports.mjs` does. */
export const withoutLanguages = {
  name: 'without-languages',
  setup({onResolve, onLoad}) {
    onResolve({filter: /[\\/]locales[\\/]index\.js$/}, ({importer, path}) =>
      /[\\/]node_modules[\\/]zod[\\/]/u.test(importer) ? {path, namespace: 'no-languages'} : undefined,
    );
    onLoad({filter: /.*/, namespace: 'no-languages'}, () => ({contents: 'export {};'}));
  },
};

/**
 * One letter beyond Latin makes V8 keep a whole file with two bytes for each of its letters, 4 MB in all. esbuild
 * escapes those in strings and names, so that the rest stands in comments and regular expressions.
 */
export function inAscii(text) {
  return text.replace(/[^\0-\x7f]/g, letter => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Nobody finds it before it is whole, even when two set up at once. Nothing of it is left when the disk is full. */
function keep(root, made, files) {
  const bundles = bundlesOf(root);
  const name = `${new Date().toISOString().replaceAll(/[^\dTZ]/gu, '')}-${process.pid}`;
  const note = join(bundles, `${name}.json`);
  try {
    mkdirSync(join(bundles, name), {recursive: true});
    for (const [file, contents] of files) writeFileSync(join(bundles, name, file), contents);
    writeFileSync(note, JSON.stringify({...made, folder: name}));
    renameSync(note, join(bundles, 'bundle.json'));
  } catch (error) {
    rmSync(note, {force: true});
    rmSync(join(bundles, name), {recursive: true, force: true});
    throw error;
  }
  removeOld(bundles);
}

/** Their names begin with the time. */
function removeOld(bundles) {
  const folders = readdirSync(bundles, {withFileTypes: true}).filter(entry => entry.isDirectory());
  const isOld = ({name}) => folders.filter(other => other.name > name).length >= keptMax;
  for (const {name} of folders.filter(isOld)) rmSync(join(bundles, name), {recursive: true, force: true});
}

if (process.argv[1] !== undefined && basename(process.argv[1]) === 'make-bundle.mjs') {
  await makeBundle(dirname(dirname(fileURLToPath(import.meta.url))));
}
