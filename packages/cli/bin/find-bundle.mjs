// Finds the bundle that `scripts/make-bundle.mjs` has made of all sources, as long as none of them has changed since.
// Plain JavaScript for Node 18 and newer, because setup asks too.
import {readFileSync, statSync} from 'node:fs';
import {join} from 'node:path';

/** Where bundles of a checkout are kept, each in a folder of its own, and `bundle.json`, which tells of the last one. */
export const bundlesOf = root => join(root, 'node_modules', '.cache', 'hearsay');

/**
 * The file to run instead of `packages/cli/src/main.ts`, or undefined when there is none that is current: the sources
 * are what counts, and run as well. Looking at all of them takes 2 ms.
 */
export function findBundle(root) {
  try {
    const {main, sources} = JSON.parse(readFileSync(join(bundlesOf(root), 'bundle.json'), 'utf8'));
    for (const [file, stamp] of sources) if (stampOf(join(root, file)) !== stamp) return undefined;
    const found = join(bundlesOf(root), main);
    return statSync(found).isFile() ? found : undefined;
  } catch {
    return undefined; // none was made, it is of another layout, or a source is gone
  }
}

/** Changes with every change of a file. */
export function stampOf(file) {
  const {size, mtimeMs} = statSync(file);
  return `${size} ${mtimeMs}`;
}
