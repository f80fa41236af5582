import {bundleForTests} from './scripts/bundle-for-tests.mjs';

/**
 * The longest files first, so that the run does not end with one of them alone; those that mostly wait and those that
 * mostly compute take turns, because the ones leave the processor to the others. What is small fills up at the end.
 */
const first = [
  'test/net/relay-paths',
  'test/e2e/failures',
  'test/net/ladder',
  'test/sim/',
  'test/e2e/hung-engine',
  'test/e2e/chaos',
  'test/net/interfaces',
  'test/e2e/routing',
  'test/e2e/control',
  'test/e2e/soak',
  'test/conformance/',
  'test/e2e/owners-rules',
  'test/e2e/sleeping-nodes',
  'test/',
  'packages/engine/',
  'packages/mesh/',
];

function place(file) {
  const index = first.findIndex(part => file.replaceAll('\\', '/').includes(`/${part}`));
  return index < 0 ? first.length : index;
}

/** Without a bundle everything works, only slower. */
async function bundled() {
  try {
    return {HEARSAY_TEST_BUNDLE: await bundleForTests()};
  } catch (error) {
    console.error(`test: the modules of others cannot be bundled, so tests will start more slowly: ${error.message}`);
    return {};
  }
}

export default {
  files: ['packages/*/src/**/*.test.ts', 'test/**/*.test.ts', '!test/{support,fixtures}/**'],
  extensions: ['ts'],
  // Most of what a test file costs is that it loads a package or two; a daemon finds its modules sooner by this too.
  nodeArguments: ['--import', './packages/cli/bin/quick-imports.mjs', '--import', './scripts/bundled-modules.mjs'],
  environmentVariables: await bundled(),
  workerThreads: false, // signals and child processes need real processes
  concurrency: 4, // CI has two cores, and half of the files mostly wait
  sortTestFiles: (a, b) => place(a) - place(b) || (a < b ? -1 : 1),
  timeout: '120s', // without any test finishing; a shared machine may be slow
};
