import {mkdir, open, readdir, readFile, rename, rm, stat, writeFile} from 'node:fs/promises';
import {join} from 'node:path';
import type {Engine} from './find-engine.ts';

/** What `installEngine` writes beside an engine; a folder without a true one is not an engine. */
export interface EngineManifest {
  readonly schema: 1;
  readonly version: string;
  readonly platform: string;
  readonly executable: string;
  readonly leadingArguments: readonly string[];
  /** The packages or files it was made from, each with the hash that was checked. */
  readonly origin: Readonly<Record<string, string>>;
  /** Sizes by path: an engine that lost a file, or was cut by a full disk, is not used. */
  readonly fileSizes: Readonly<Record<string, number>>;
  readonly installedAtMs: number;
}

/** How names begin inside a work folder that nobody may use yet. */
export const temporaryPrefix = 'unfinished-';

const manifestName = 'manifest.json';

/** The platform that an engine is built for, in Node's words. A cache folder may be shared by unlike machines. */
export const platform: string = `${process.platform}-${process.arch}`;

export function enginesFolder(cacheFolder: string): string {
  return join(cacheFolder, 'engines');
}

/** Complete engines for this platform, the last installed first. */
export async function installedEngines(cacheFolder: string): Promise<Engine[]> {
  const names = await namesIn(enginesFolder(cacheFolder));
  const found = await Promise.all(
    names.filter(name => !name.startsWith('.')).map(name => readInstalled(join(enginesFolder(cacheFolder), name))),
  );
  return found
    .filter(entry => entry !== undefined)
    .toSorted((a, b) => b.installedAtMs - a.installedAtMs)
    .map(entry => entry.engine);
}

export async function installedEngine(cacheFolder: string, name: string): Promise<Engine | undefined> {
  return (await readInstalled(join(enginesFolder(cacheFolder), name)))?.engine;
}

/**
 * Turns a verified folder into the installed engine `name`. Its bytes are on the disk before the rename, so that even a
 * power cut leaves a whole engine or none. The caller holds the install lock.
 */
export async function commitEngine(
  cacheFolder: string,
  name: string,
  folder: string,
  facts: Omit<EngineManifest, 'schema' | 'platform' | 'fileSizes'>,
): Promise<void> {
  const fileSizes: Record<string, number> = {};
  for (const entry of await readdir(folder, {recursive: true, withFileTypes: true})) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    await using handle = await open(file, process.platform === 'win32' ? 'r+' : 'r');
    await handle.sync();
    fileSizes[file.slice(folder.length + 1)] = (await handle.stat()).size;
  }
  const manifest: EngineManifest = {schema: 1, platform, fileSizes, ...facts};
  await writeFile(join(folder, manifestName), JSON.stringify(manifest, undefined, 2), {flush: true});

  const target = join(enginesFolder(cacheFolder), name);
  await rm(target, {recursive: true, force: true}); // only a damaged one can be there
  await rename(folder, target);
}

/** Work folders of installs that were given up, also for other engines. The caller holds the install lock. */
export async function removeLeftovers(cacheFolder: string): Promise<void> {
  const engines = enginesFolder(cacheFolder);
  const leftovers = (await namesIn(engines)).filter(name => /^\.(?:work|partial)-/.test(name));
  for (const name of leftovers) await rm(join(engines, name), {recursive: true, force: true, maxRetries: 3});
}

/** An empty folder in which an engine is put together, on the file system where it will stay. */
export async function makePartialFolder(cacheFolder: string, name: string): Promise<string> {
  const folder = join(enginesFolder(cacheFolder), `.partial-${name}`);
  await rm(folder, {recursive: true, force: true});
  await mkdir(folder, {recursive: true});
  return folder;
}

/** The folder in which the parts of an engine are made; what an earlier, killed install finished is still there. */
export async function openWorkFolder(cacheFolder: string, name: string): Promise<string> {
  const folder = join(enginesFolder(cacheFolder), `.work-${name}`);
  await mkdir(folder, {recursive: true});
  const unfinished = (await namesIn(folder)).filter(entry => entry.startsWith(temporaryPrefix));
  for (const entry of unfinished) await rm(join(folder, entry), {recursive: true, force: true, maxRetries: 3});
  return folder;
}

async function readInstalled(
  folder: string,
): Promise<{readonly engine: Engine; readonly installedAtMs: number} | undefined> {
  try {
    const manifest: unknown = JSON.parse(await readFile(join(folder, manifestName), 'utf8'));
    if (!isManifest(manifest) || manifest.platform !== platform) return undefined;
    for (const [file, size] of Object.entries(manifest.fileSizes))
      if ((await stat(join(folder, file))).size !== size) return undefined;
    const {version, leadingArguments, installedAtMs} = manifest;
    const command = join(folder, manifest.executable);
    return {engine: {command, leadingArguments, source: 'installed', version}, installedAtMs};
  } catch {
    return undefined; // no manifest, a torn one, or a missing file: whatever it is, it is no engine
  }
}

function isManifest(value: unknown): value is EngineManifest {
  if (typeof value !== 'object' || value === null) return false;
  const manifest: {readonly [key in keyof EngineManifest]?: unknown} = value;
  return (
    manifest.schema === 1 &&
    typeof manifest.version === 'string' &&
    typeof manifest.platform === 'string' &&
    typeof manifest.executable === 'string' &&
    Array.isArray(manifest.leadingArguments) &&
    typeof manifest.installedAtMs === 'number' &&
    typeof manifest.fileSizes === 'object' &&
    manifest.fileSizes !== null &&
    manifest.executable in manifest.fileSizes
  );
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch {
    return []; // nothing was ever installed
  }
}
