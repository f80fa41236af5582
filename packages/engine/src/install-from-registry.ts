import {createHash} from 'node:crypto';
import {mkdir, mkdtemp, readdir, readFile, rename, rm, stat} from 'node:fs/promises';
import {join} from 'node:path';
import {Fault, type Clock} from '@hearsay/core';
import {buildServer, sourceFolders} from './build-server.ts';
import {temporaryPrefix} from './engine-store.ts';
import type {EngineRecipe, InstallProgress} from './install-engine.ts';
import {runCommand} from './run-command.ts';
import {unpackFlat, unpackTimeLimitMs} from './unpack-flat.ts';
import type {Archive} from './unpack-flat.ts';

/** A package by npm's own way of naming one, and the hash that its file must have. */
interface PinnedPackage {
  readonly spec: string;
  /** `sha512-` and base64, as `npm view SPEC dist.integrity` prints it. */
  readonly integrity: string;
}

export interface PinnedPackages {
  /** The llama.cpp release inside. Source and libraries are of the same one, else their interfaces would not fit. */
  readonly release: string;
  /** Holds the source as a git bundle. */
  readonly source: PinnedPackage;
  /** Hold the compiled libraries, by platform. */
  readonly libraries: Readonly<Record<string, PinnedPackage>>;
}

/** node-llama-cpp publishes llama.cpp's source and libraries, but no server: that part is compiled here. */
export const pinnedPackages: PinnedPackages = {
  release: 'v0.5.0',
  source: {
    spec: 'node-llama-cpp@3.22.1',
    integrity: 'sha512-bltIipuWmc123H7tMIgDGKSsSrhmhlQYeVUC48XTjVW7XGJJiJJyCdlTMzQ/LiWoPkGDpcL4FviDpgw7qfTiDw==',
  },
  libraries: {
    'linux-x64': {
      spec: '@node-llama-cpp/linux-x64@3.22.1',
      integrity: 'sha512-5uCCDNqWCNfaAm8aR/Uzxbo4HBpKgNF91kCHPepKhgMgV2OAmatoefbOlMihsqCiH2Od35E/eUHQCFbfRBJuOg==',
    },
    'linux-arm64': {
      spec: '@node-llama-cpp/linux-arm64@3.22.1',
      integrity: 'sha512-W+7naKCXX9/eEjjFmRS8vvx91QyLXDbeFxexZc3bh/PtQABZgmRL3C0AtYYXn4YGTj/3Qor4lWZn2tpjZFPLdQ==',
    },
  },
};

export interface RegistrySource {
  readonly packages: PinnedPackages;
  readonly platform: string;
  readonly compiler: string | undefined;
  readonly jobs: number;
  readonly report: (progress: InstallProgress) => void;
}

/** A slow line needs minutes for the 46 MB of both packages; npm gives up on a dead one by itself. */
const downloadTimeLimitMs = 20 * 60_000;

/** Builds llama-server from two packages of whatever registry npm is configured for. No script of a package is run. */
export function registryRecipe(
  from: RegistrySource,
  deps: {readonly clock: Clock},
  signal: AbortSignal | undefined,
): EngineRecipe {
  const {packages, report} = from;
  const libraries = packages.libraries[from.platform];
  if (libraries === undefined)
    throw new Fault(
      'INSTALL_FAILED',
      `npm has llama.cpp libraries for ${Object.keys(packages.libraries).join(' and ')} only, not ${from.platform}`,
      {details: {platform: from.platform}},
    );
  return {
    name: `llama.cpp-${packages.release}-${from.platform}`,
    make: async (work, target) => {
      await requireGit(deps, signal);
      report({step: 'download', done: 0, total: 2, note: packages.source.spec});
      const sourceFile = await fetchPackage(packages.source, work, deps, signal);
      report({step: 'download', done: 1, total: 2, note: libraries.spec});
      const librariesFile = await fetchPackage(libraries, work, deps, signal);
      report({step: 'unpack', done: 0, total: 1, note: `llama.cpp ${packages.release}`});
      const source = await unpackSource(sourceFile, work, deps, signal);
      const isWanted: Archive['isWanted'] = entry => entry.isFile() && entry.name.endsWith('.so');
      await unpackFlat({file: librariesFile, work, target, member: 'package/bins', isWanted}, deps, signal);
      const {compiler, jobs} = from;
      try {
        await buildServer({source, target, work, compiler, jobs, report}, deps, signal);
      } catch (error) {
        // A power cut may have left a torn file that fails every time, so the next try begins anew.
        if (signal?.aborted !== true) await rm(work, {recursive: true, force: true, maxRetries: 3});
        throw error;
      }
      const origin = Object.fromEntries([packages.source, libraries].map(item => [item.spec, item.integrity]));
      return {executable: 'llama-server', leadingArguments: [], origin};
    },
  };
}

async function requireGit(deps: {readonly clock: Clock}, signal: AbortSignal | undefined): Promise<void> {
  await runCommand('git', ['--version'], {timeLimitMs: unpackTimeLimitMs}, deps, signal);
}

/** npm knows the registry, the proxy and the credentials; the hash is checked here, not by it. */
async function fetchPackage(
  item: PinnedPackage,
  work: string,
  deps: {readonly clock: Clock},
  signal: AbortSignal | undefined,
): Promise<string> {
  const file = join(work, `${createHash('sha256').update(item.integrity).digest('hex').slice(0, 16)}.tgz`);
  if ((await exists(file)) && (await integrityOf(file)) === item.integrity) return file;
  const folder = await mkdtemp(join(work, temporaryPrefix));
  const quiet = ['--ignore-scripts', '--loglevel=error', '--prefer-offline', '--pack-destination', folder];
  await runCommand('npm', ['pack', item.spec, ...quiet], {cwd: folder, timeLimitMs: downloadTimeLimitMs}, deps, signal);
  const packed = (await readdir(folder)).find(name => name.endsWith('.tgz'));
  if (packed === undefined) throw new Fault('INSTALL_FAILED', `npm pack ${item.spec} made no file`);
  const integrity = await integrityOf(join(folder, packed));
  if (integrity !== item.integrity) {
    await rm(folder, {recursive: true});
    throw new Fault(
      'INSTALL_FAILED',
      `${item.spec} from the npm registry is not the file that hearsay knows; thrown away`,
      {
        details: {package: item.spec, expected: item.integrity, found: integrity},
      },
    );
  }
  await rename(join(folder, packed), file);
  await rm(folder, {recursive: true});
  return file;
}

async function integrityOf(file: string): Promise<string> {
  const hash = createHash('sha512').update(await readFile(file));
  return `sha512-${hash.digest('base64')}`;
}

/** Checks out the part of the source that the server needs. The folder appears whole or not at all. */
async function unpackSource(
  file: string,
  work: string,
  deps: {readonly clock: Clock},
  signal: AbortSignal | undefined,
): Promise<string> {
  const source = join(work, 'source');
  if (await exists(source)) return source;
  const folder = await mkdtemp(join(work, temporaryPrefix));
  const limit = {timeLimitMs: unpackTimeLimitMs};
  const tree = join(folder, 'tree');
  const repository = join(folder, 'repository');
  const bundle = 'package/llama/gitRelease.bundle';
  await mkdir(tree);
  await runCommand('tar', ['-xzf', file, '-C', folder, bundle], limit, deps, signal);
  const clone = ['clone', '--quiet', '--bare', '--template=', join(folder, bundle), repository];
  await runCommand('git', clone, limit, deps, signal);
  // Named folders, because a git hook that started us may have set GIT_DIR.
  const checkout = [
    `--git-dir=${repository}`,
    `--work-tree=${tree}`,
    'checkout',
    '--quiet',
    'HEAD',
    '--',
    ...sourceFolders,
  ];
  await runCommand('git', checkout, limit, deps, signal);
  await rename(tree, source);
  await rm(folder, {recursive: true});
  return source;
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch {
    return false;
  }
}
