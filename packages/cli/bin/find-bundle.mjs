// Finds the bundle that `scripts/make-bundle.mjs` has made of all sources, as long as none of them has changed since.
// Plain JavaScript for Node 18 and newer, because setup asks too.
import {readFileSync, statSync} from 'node:fs';
import {join} from 'node:path';

/**
 * Where bundles of a checkout are kept, each in a folder of its own, and `bundle.json`, which tells of the last one.
 * Not in node_modules, which npm empties while daemons run.
 */
export const bundlesOf = root => join(root, '.cache', 'bundles');

/**
 * The file to run instead of `packages/cli/src/main.ts`, or undefined when there is none that is whole and current: the
 * sources are what counts, and run as well. Looking at all of them takes 3 ms.
 */
export function findBundle(root) {
  try {
    const made = JSON.parse(readFileSync(join(bundlesOf(root), 'bundle.json'), 'utf8'));
    if (made.root !== root) return undefined; // moved or copied: it names files by their place
    for (const [file, stamp] of made.sources) if (stampOf(join(root, file)) !== stamp) return undefined;
    const folder = join(bundlesOf(root), made.folder);
    for (const [file, size] of made.parts) if (statSync(join(folder, file)).size !== size) return undefined;
    return join(folder, made.main);
  } catch {
    return undefined; // none was made, it is of another layout, or a file is gone
  }
}

/** Changes with every change of a file. */
export function stampOf(file) {
  const {size, mtimeMs} = statSync(file);
  return `${size} ${mtimeMs}`;
}
