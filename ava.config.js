export default {
  files: ['packages/*/src/**/*.test.ts', 'test/**/*.test.ts', '!test/{support,fixtures}/**'],
  extensions: ['ts'],
  workerThreads: false, // signals and child processes need real processes
  concurrency: 2, // CI has two cores
  timeout: '120s', // without any test finishing; a shared machine may be slow
};
