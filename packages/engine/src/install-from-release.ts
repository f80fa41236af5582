import {readdir} from 'node:fs/promises';
import {basename, join} from 'node:path';
import {describeError, Fault, isObject, timeLimit, type Clock} from '@hearsay/core';
import {downloadFile} from './download-file.ts';
import type {EngineRecipe, InstallProgress} from './install-engine.ts';
import {unpackFlat} from './unpack-flat.ts';

/** Which hardware a release file is for. */
export type EngineVariant = 'cpu' | 'vulkan' | 'cuda' | 'rocm' | 'metal';

export interface ReleaseSource {
  readonly platform: string;
  readonly variant?: EngineVariant | undefined;
  readonly release?: string | undefined;
  readonly releaseApi?: string | undefined;
  readonly report: (progress: InstallProgress) => void;
}

interface Asset {
  readonly name: string;
  readonly url: string;
  readonly sizeBytes: number;
  readonly sha256: string | undefined;
}

/** Where llama.cpp publishes its binaries. */
const officialApi = 'https://api.github.com/repos/ggml-org/llama.cpp';

const answerTimeLimitMs = 30_000;

/** A CUDA build is 400 MB, its runtime 600 MB. */
const assetBytesMax = 4 * 1024 ** 3;

/** Downloads an official build. Only files whose sha256 the release names are taken. */
export async function releaseRecipe(
  from: ReleaseSource,
  deps: {readonly clock: Clock},
  signal: AbortSignal | undefined,
): Promise<EngineRecipe> {
  const {platform, report, variant = platform.startsWith('darwin') ? 'metal' : 'cpu'} = from;
  const {tag, assets} = await fetchRelease(from, deps, signal);
  const names = chooseAssets([...assets.keys()], platform, variant);
  if (names.length === 0)
    throw new Fault('INSTALL_FAILED', `llama.cpp ${tag} has no file for ${platform} with ${variant}`, {
      details: {release: tag, platform, variant},
    });
  const chosen = names.flatMap(name => assets.get(name) ?? []);
  return {
    name: `llama.cpp-${tag}-${platform}${variant === 'cpu' || variant === 'metal' ? '' : `-${variant}`}`,
    make: async (work, target) => {
      const origin: Record<string, string> = {};
      for (const asset of chosen) {
        origin[asset.name] = `sha256-${await fetchAsset(asset, work, report, deps, signal)}`;
        report({step: 'unpack', done: 0, total: 1, note: asset.name});
        await unpackFlat({file: join(work, asset.name), work, target}, deps, signal);
      }
      const files = await readdir(target);
      const executable = ['llama-server', 'llama-server.exe', 'llama', 'llama.exe'].find(name => files.includes(name));
      if (executable === undefined)
        throw new Fault('INSTALL_FAILED', `llama.cpp ${tag} brought no llama-server`, {details: {assets: names}});
      return {executable, leadingArguments: executable.startsWith('llama-server') ? [] : ['serve'], origin};
    },
  };
}

/**
 * The files of a release that make an engine: the build itself, for CUDA also its runtime. Of several CUDA or ROCm
 * versions the lowest, which runs with older drivers too.
 */
export function chooseAssets(names: readonly string[], platform: string, variant: EngineVariant): string[] {
  const [system, processor] = platform.split('-');
  const os = {linux: 'ubuntu', darwin: 'macos', win32: 'win'}[system ?? ''];
  if (os === undefined || (variant === 'metal') !== (os === 'macos' && variant !== 'cpu')) return [];
  const hardware = variant === 'metal' || (variant === 'cpu' && os !== 'win') ? '' : `-${variant}(?:-[\\d.]+)?`;
  const build = new RegExp(`^llama-[^-]+-bin-(?<key>${os}${hardware}-${processor})\\.(?:tar\\.gz|zip)$`);
  const found = names.filter(name => build.test(name)).toSorted(new Intl.Collator('en', {numeric: true}).compare)[0];
  if (found === undefined) return [];
  const key = build.exec(found)?.groups?.['key'] ?? '';
  const runtime = names.find(name => name.startsWith('cudart-') && name.includes(`-bin-${key}.`));
  return runtime === undefined ? [found] : [found, runtime];
}

async function fetchRelease(
  from: ReleaseSource,
  deps: {readonly clock: Clock},
  signal: AbortSignal | undefined,
): Promise<{readonly tag: string; readonly assets: ReadonlyMap<string, Asset>}> {
  const which = from.release === undefined ? 'latest' : `tags/${encodeURIComponent(from.release)}`;
  const url = `${from.releaseApi ?? officialApi}/releases/${which}`;
  using limit = timeLimit(deps.clock, answerTimeLimitMs, 'the answer', signal);
  try {
    const response = await fetch(url, {headers: {accept: 'application/json'}, signal: limit.signal});
    if (response.ok) return parseRelease(await response.json());
    await response.body?.cancel();
    throw new Error(`HTTP ${response.status}`);
  } catch (cause) {
    signal?.throwIfAborted();
    throw new Fault(
      'INSTALL_FAILED',
      `cannot read ${url}: ${describeError(cause)}; where it cannot be reached, install from the npm registry`,
      {
        cause,
        details: {url},
      },
    );
  }
}

/** Reads the little that is needed of GitHub's answer; what does not look like an asset is left out. */
function parseRelease(value: unknown): {readonly tag: string; readonly assets: ReadonlyMap<string, Asset>} {
  if (!isObject(value) || typeof value['tag_name'] !== 'string' || !Array.isArray(value['assets']))
    throw new Error('not a release');
  const tag = value['tag_name'];
  if (!/^[\w.-]{1,60}$/.test(tag)) throw new Error('a release with a strange name'); // it becomes a folder
  const assets = value['assets'].flatMap((item: unknown): Asset[] => {
    if (!isObject(item)) return [];
    const {name, size, digest, browser_download_url: url} = item;
    if (typeof name !== 'string' || typeof url !== 'string' || typeof size !== 'number' || basename(name) !== name)
      return [];
    const sha256 =
      typeof digest === 'string' ? /^sha256:(?<hex>[0-9a-f]{64})$/.exec(digest)?.groups?.['hex'] : undefined;
    return [{name, url, sizeBytes: size, sha256}];
  });
  return {tag, assets: new Map(assets.map(asset => [asset.name, asset]))};
}

async function fetchAsset(
  asset: Asset,
  work: string,
  report: (progress: InstallProgress) => void,
  deps: {readonly clock: Clock},
  signal: AbortSignal | undefined,
): Promise<string> {
  const {name, url, sizeBytes, sha256} = asset;
  if (sha256 === undefined || sizeBytes > assetBytesMax)
    throw new Fault('INSTALL_FAILED', `${name} has no sha256 to check it by, or is too large`, {
      details: {name, sizeBytes},
    });
  let lastPercent = -1;
  const onBytes = (doneBytes: number): void => {
    const percent = Math.floor((doneBytes / sizeBytes) * 100);
    if (percent !== lastPercent) report({step: 'download', done: percent, total: 100, note: `${name} (%)`});
    lastPercent = percent;
  };
  await downloadFile({url, path: join(work, name), sizeBytes, sha256, onBytes}, deps, signal);
  return sha256;
}

/** Puts the files of an archive side by side into `target`, without the folder that most archives have around them. */
