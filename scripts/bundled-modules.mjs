// Loaded before a test file: puts the modules that `bundle-for-tests.mjs` has made in the place of those they stand for.
import {readFileSync} from 'node:fs';
import {registerHooks} from 'node:module';

const note = process.env.HEARSAY_TEST_BUNDLE;
if (note !== undefined) {
  const bundled = new Map(JSON.parse(readFileSync(note, 'utf8')));
  registerHooks({
    resolve(specifier, context, nextResolve) {
      const resolved = nextResolve(specifier, context);
      const url = bundled.get(resolved.url);
      return url === undefined ? resolved : {url, format: 'module', shortCircuit: true};
    },
  });
}
