// Makes one program of the thousand files that hearsay consists of, ours and those of its dependencies: a start takes
// half of the time, a daemon 10 MB less. It is a cache that nobody needs, and misleads nobody who edits a source.
// Plain JavaScript for Node 18 and newer, because setup runs it.
import {mkdirSync, readdirSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync} from 'node:fs';
import {basename, dirname, join} from 'node:path';
import {fileURLToPath, pathToFileURL} from 'node:url';
import {bundlesOf, findBundle, stampOf} from '../packages/cli/bin/find-bundle.mjs';

/** A daemon loads some parts only when somebody asks for them, so those of running ones must stay; 5 MB each. */
const keptMax = 5;

/** CommonJS modules in the bundle find Node's own by it. */
const requireOfNode = "import {createRequire} from 'node:module';\nconst require = createRequire(import.meta.url);";

/** Makes the bundle of a checkout unless it is there and current. Rejects when that is impossible. */
export async function makeBundle(root) {
  if (findBundle(root) !== undefined) return;
  const {build} = await import('esbuild'); // of no use to the many set-ups that end above
  const startedMs = Date.now();
  const bundles = bundlesOf(root);
  const folder = `${new Date(startedMs).toISOString().replaceAll(/[^\dTZ]/gu, '')}-${process.pid}`;
  mkdirSync(bundles, {recursive: true});
  const {metafile} = await build({
    absWorkingDir: root,
    entryPoints: {main: 'packages/cli/src/main.ts'},
    outdir: join(bundles, folder),
    outExtension: {'.js': '.mjs'},
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    legalComments: 'none',
    banner: {js: requireOfNode},
    metafile: true,
    logLevel: 'silent',
    plugins: [asInPlace(root), withoutLanguages],
  });
  const sources = sourcesIn(root, Object.keys(metafile.inputs)).map(file => [file, stampOf(join(root, file))]);
  const changed = sources.find(([, stamp]) => Number(stamp.split(' ')[1]) >= startedMs);
  if (changed !== undefined) throw new Error(`${changed[0]} was changed meanwhile`);
  writeWhole(join(bundles, 'bundle.json'), JSON.stringify({main: join(folder, 'main.mjs'), sources}));
  removeOld(bundles);
}

/** Our own files that were read, and what decided that. What lies in node_modules npm alone changes, and notes it. */
function sourcesIn(root, inputs) {
  const own = inputs.filter(file => file.startsWith('packages/'));
  const manifests = readdirSync(join(root, 'packages')).map(name => `packages/${name}/package.json`);
  return [...own, ...manifests, 'node_modules/.package-lock.json', 'scripts/make-bundle.mjs'];
}

/** Our modules that look for files beside them find them where they are. */
function asInPlace(root) {
  return {
    name: 'as-in-place',
    setup({onLoad}) {
      onLoad({filter: /[\\/]src[\\/].*\.ts$/}, ({path}) => {
        if (!path.startsWith(join(realpathSync(root), 'packages'))) return undefined;
        const contents = readFileSync(path, 'utf8')
          .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href))
          .replaceAll('import.meta.dirname', JSON.stringify(dirname(path)));
        return {loader: 'ts', contents};
      });
    },
  };
}

/** Zod brings its messages in fifty languages, which are half of it; ours is English. As `quick-imports.mjs` does. */
const withoutLanguages = {
  name: 'without-languages',
  setup({onResolve, onLoad}) {
    onResolve({filter: /[\\/]locales[\\/]index\.js$/}, ({importer, path}) =>
      /[\\/]node_modules[\\/]zod[\\/]/u.test(importer) ? {path, namespace: 'no-languages'} : undefined,
    );
    onLoad({filter: /.*/, namespace: 'no-languages'}, () => ({contents: 'export {};'}));
  },
};

/** Nobody ever reads half a file, even when two set up at once. */
function writeWhole(file, text) {
  const part = `${file}.${process.pid}`;
  writeFileSync(part, text);
  renameSync(part, file);
}

/** Their names begin with the time. */
function removeOld(bundles) {
  const folders = readdirSync(bundles, {withFileTypes: true}).filter(entry => entry.isDirectory());
  const newer = name => folders.filter(other => other.name > name).length;
  for (const {name} of folders) if (newer(name) >= keptMax) rmSync(join(bundles, name), {recursive: true, force: true});
}

if (process.argv[1] !== undefined && basename(process.argv[1]) === 'make-bundle.mjs') {
  await makeBundle(dirname(dirname(fileURLToPath(import.meta.url))));
}
