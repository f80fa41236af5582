// Makes a start find its thousand modules sooner, and leaves out the one part of them that nobody reads.
import {registerHooks} from 'node:module';

/** What a specifier means in a folder, by both: Node would look for it again from each file there. */
const found = new Map();

registerHooks({
  resolve(specifier, context, nextResolve) {
    const {parentURL, conditions} = context;
    if (parentURL === undefined || specifier.startsWith('node:')) return nextResolve(specifier, context);
    // Our own sources name each other by their whole path: there is nothing to look for.
    if (specifier.startsWith('.') && specifier.endsWith('.ts')) {
      return {url: new URL(specifier, parentURL).href, format: 'module-typescript', shortCircuit: true};
    }
    // Zod loads its messages in fifty languages, which are half of it: 20 ms and 9 MB of every process. Ours is English.
    if (specifier.endsWith('/locales/index.js') && parentURL.includes('/node_modules/zod/')) {
      return {url: 'data:text/javascript,', format: 'module', shortCircuit: true};
    }
    const folder = parentURL.slice(0, parentURL.lastIndexOf('/'));
    const key = `${conditions.includes('require') ? 'require' : 'import'} ${specifier} ${folder}`;
    const known = found.get(key);
    if (known !== undefined) return known;
    const resolved = {...nextResolve(specifier, context), shortCircuit: true};
    found.set(key, resolved);
    return resolved;
  },
});
