import {execFileSync} from 'node:child_process';
import {createHash} from 'node:crypto';
import {once} from 'node:events';
import {mkdir, mkdtemp, readdir, readFile, rm, writeFile} from 'node:fs/promises';
import {createServer} from 'node:http';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {Fault} from '@hearsay/core';
import test, {type ExecutionContext} from 'ava';
import {realEnvironment} from '../../../test/support/environment.ts';
import {findEngine} from './find-engine.ts';
import {formatProgress, installEngine, type InstallOptions} from './install-engine.ts';
import {chooseAssets} from './install-from-release.ts';

const deps = realEnvironment();

/** Names as llama.cpp's releases have them. */
const names = `
  llama-b9000-bin-macos-arm64.tar.gz llama-b9000-bin-macos-x64.tar.gz
  llama-b9000-bin-ubuntu-x64.tar.gz llama-b9000-bin-ubuntu-arm64.tar.gz llama-b9000-bin-ubuntu-vulkan-x64.tar.gz
  llama-b9000-bin-ubuntu-cuda-13.4-x64.tar.gz llama-b9000-bin-ubuntu-cuda-12.8-x64.tar.gz
  llama-b9000-bin-ubuntu-rocm-10.0-x64.tar.gz cudart-llama-b9000-bin-ubuntu-cuda-12.8-x64.tar.gz
  llama-b9000-bin-win-cpu-x64.zip llama-b9000-bin-win-cpu-arm64.zip llama-b9000-bin-win-sycl-x64.zip
  llama-b9000-bin-win-vulkan-x64.zip llama-b9000-bin-win-cuda-12.4-x64.zip llama-b9000-bin-win-cuda-13.4-x64.zip
  cudart-llama-bin-win-cuda-12.4-x64.zip`
  .trim()
  .split(/\s+/);

for (const [platform, variant, ...expected] of [
  ['linux-x64', 'cpu', 'llama-b9000-bin-ubuntu-x64.tar.gz'],
  ['linux-arm64', 'cpu', 'llama-b9000-bin-ubuntu-arm64.tar.gz'],
  ['linux-x64', 'vulkan', 'llama-b9000-bin-ubuntu-vulkan-x64.tar.gz'],
  ['linux-x64', 'rocm', 'llama-b9000-bin-ubuntu-rocm-10.0-x64.tar.gz'],
  ['darwin-arm64', 'metal', 'llama-b9000-bin-macos-arm64.tar.gz'],
  ['darwin-x64', 'cpu', 'llama-b9000-bin-macos-x64.tar.gz'],
  ['win32-arm64', 'cpu', 'llama-b9000-bin-win-cpu-arm64.zip'],
  ['win32-x64', 'vulkan', 'llama-b9000-bin-win-vulkan-x64.zip'],
  ['win32-x64', 'cuda', 'llama-b9000-bin-win-cuda-12.4-x64.zip', 'cudart-llama-bin-win-cuda-12.4-x64.zip'],
  [
    ...(['linux-x64', 'cuda', 'llama-b9000-bin-ubuntu-cuda-12.8-x64.tar.gz'] as const),
    'cudart-llama-b9000-bin-ubuntu-cuda-12.8-x64.tar.gz',
  ],
  ['linux-x64', 'metal'],
  ['linux-arm64', 'vulkan'],
  ['freebsd-x64', 'cpu'],
] as const)
  test(`${platform} with ${variant} takes ${expected.join(' and ') || 'nothing'}`, t => {
    t.deepEqual(chooseAssets(names, platform, variant), expected);
  });

interface Publisher {
  readonly options: InstallOptions;
  readonly progress: string[];
  /** What the publisher does from now on. */
  readonly behave: {cutAfter?: number | undefined; digest?: string | undefined; status?: number | undefined};
}

/** A publisher on this machine, with one release whose only file is a llama-server of few words. */
async function publish(t: ExecutionContext): Promise<Publisher> {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-release-'));
  const tree = join(folder, 'llama-b9000');
  await mkdir(tree);
  await writeFile(join(tree, 'llama-server'), '#!/bin/sh\necho "version: 9000 (abc)" >&2\n', {mode: 0o755});
  await writeFile(join(tree, 'libllama.so'), Buffer.alloc(50_000, 7));
  const name = `llama-b9000-bin-${process.platform === 'darwin' ? 'macos' : 'ubuntu'}-${process.arch}.tar.gz`;
  execFileSync('tar', ['-czf', join(folder, name), '-C', folder, 'llama-b9000']);
  const archive = await readFile(join(folder, name));
  const behave: Publisher['behave'] = {};

  const server = createServer((request, response) => {
    const base = `http://${request.headers.host}`;
    const digest = behave.digest ?? `sha256:${createHash('sha256').update(archive).digest('hex')}`;
    const asset = {name, size: archive.length, digest, browser_download_url: `${base}/files/${name}`};
    if (behave.status !== undefined) response.writeHead(behave.status).end();
    else if (request.url === '/releases/latest')
      response.end(JSON.stringify({tag_name: 'b9000', assets: [asset, null]}));
    else if (request.url === `/files/${name}`) {
      const from = Number(/\d+/.exec(request.headers.range ?? '')?.[0] ?? 0);
      const range = {'content-range': `bytes ${from}-${archive.length - 1}/${archive.length}`};
      response.writeHead(from > 0 ? 206 : 200, {'content-length': archive.length - from, ...(from > 0 ? range : {})});
      const part = archive.subarray(from, from + (behave.cutAfter ?? Infinity));
      response.write(part, () => (from + part.length < archive.length ? request.socket.end() : response.end()));
    } else response.writeHead(404).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(async () => {
    server.closeAllConnections();
    server.close();
    await rm(folder, {recursive: true, force: true});
  });
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const progress: string[] = [];
  const options: InstallOptions = {
    from: 'release',
    cacheFolder: join(folder, 'cache'),
    variant: process.platform === 'darwin' ? 'metal' : 'cpu',
    releaseApi: `http://127.0.0.1:${port}`,
    onProgress: item => progress.push(formatProgress(item)),
  };
  return {options, progress, behave};
}

test('a release is downloaded through broken connections, verified, and found afterwards', async t => {
  const {options, progress, behave} = await publish(t);
  behave.cutAfter = 200;
  const engine = await installEngine(options, deps);
  t.is(engine.version, '9000 (abc)');
  t.deepEqual(await findEngine({searchPath: '', cacheFolder: options.cacheFolder}, deps), engine);
  const engines = await readdir(join(options.cacheFolder, 'engines'));
  const name = `llama.cpp-b9000-${process.platform}-${process.arch}`;
  t.deepEqual(engines.toSorted(), ['.install.lock', name], 'nothing else is left');
  t.true(progress.includes('verify 1/2 no model to try, left out'));

  progress.length = 0;
  t.deepEqual(await installEngine(options, deps), engine);
  t.deepEqual(progress, [], 'a second install finds the first');
});

test('a file with the wrong digest, or with none, is never installed', async t => {
  const {options, behave} = await publish(t);
  for (const digest of [`sha256:${'0'.repeat(64)}`, 'md5:0']) {
    behave.digest = digest;
    const fault = await t.throwsAsync(installEngine(options, deps), {instanceOf: Fault, message: /sha256/});
    t.is(fault?.code, 'INSTALL_FAILED');
    t.is(await findEngine({searchPath: '', cacheFolder: options.cacheFolder}, deps), undefined);
  }
  behave.digest = undefined;
  await t.notThrowsAsync(installEngine(options, deps), 'a good one can be installed after that');
});

test('a release that does not exist is a fault that names other ways to an engine', async t => {
  const {options} = await publish(t);
  const fault = await t.throwsAsync(installEngine({...options, release: 'b1'}, deps), {instanceOf: Fault});
  t.is(fault?.code, 'INSTALL_FAILED');
  t.regex(fault?.message ?? '', /releases\/tags\/b1: HTTP 404.*npm registry.*brew install llama\.cpp/s);
});

test('hardware that the release has no file for is a fault', async t => {
  const {options} = await publish(t);
  await t.throwsAsync(installEngine({...options, variant: 'rocm'}, deps), {
    instanceOf: Fault,
    message: /has no file for/,
  });
});
