import {access, constants, stat} from 'node:fs/promises';
import {basename, delimiter, join, sep} from 'node:path';
import {Fault, type Clock} from '@hearsay/core';
import {installedEngines} from './engine-store.ts';
import {runCommand} from './run-command.ts';

/** A llama-server that can be started on this machine. */
export interface Engine {
  readonly command: string;
  /** They come before llama-server's own arguments: `serve` where the program is the multi-call `llama`. */
  readonly leadingArguments: readonly string[];
  readonly source: 'config' | 'path' | 'installed';
  readonly version?: string;
}

export interface EngineSearch {
  /** From the configuration: a path, or a name that is looked up like a shell would. */
  readonly configuredCommand?: string | undefined;
  /** The value of PATH. */
  readonly searchPath: string;
  /** Where `installEngine` puts engines. */
  readonly cacheFolder: string;
}

/** `--version` answers within milliseconds; a cold disk or a virus scanner may take seconds. */
const versionTimeLimitMs = 15_000;

const executableSuffix = process.platform === 'win32' ? '.exe' : '';

/**
 * The engine to use: the configured one, else `llama-server` or `llama` on PATH, else the newest installed one. A
 * configured engine that cannot be run is a fault and never replaced by another one.
 */
export async function findEngine(
  search: EngineSearch,
  deps: {readonly clock: Clock},
  signal?: AbortSignal,
): Promise<Engine | undefined> {
  if (search.configuredCommand !== undefined && search.configuredCommand !== '')
    return configuredEngine(search.configuredCommand, search.searchPath);

  const server = await onPath('llama-server', search.searchPath);
  if (server !== undefined) return {command: server, leadingArguments: [], source: 'path'};

  const multiCall = await onPath('llama', search.searchPath);
  if (multiCall !== undefined) {
    const engine: Engine = {command: multiCall, leadingArguments: ['serve'], source: 'path'};
    const version = await versionIfEngine(engine, deps, signal);
    if (version !== undefined) return {...engine, version};
  }
  return (await installedEngines(search.cacheFolder))[0];
}

/** What `--version` says, such as `0.5.0-dev (build 1, commit 0ad4a86)`. A program that says nothing so is a fault. */
export async function engineVersion(
  engine: Pick<Engine, 'command' | 'leadingArguments'>,
  deps: {readonly clock: Clock},
  signal?: AbortSignal,
): Promise<string> {
  const {command, leadingArguments} = engine;
  try {
    const limit = {timeLimitMs: versionTimeLimitMs};
    const output = await runCommand(command, [...leadingArguments, '--version'], limit, deps, signal);
    const version = parseEngineVersion(`${output.stdout}\n${output.stderr}`);
    if (version !== undefined) return version;
  } catch (cause) {
    signal?.throwIfAborted();
    throw new Fault('ENGINE_FAILED', `${command} --version failed; it is damaged or not made for this machine`, {
      cause,
      details: {command},
    });
  }
  throw new Fault('ENGINE_FAILED', `${command} --version names no version; it is not a llama-server`, {
    details: {command},
  });
}

/** llama-server prints log lines around the version, and prints all of it to stderr. */
export function parseEngineVersion(output: string): string | undefined {
  return /^version: (?<version>.{1,200}?)\s*$/m.exec(output)?.groups?.['version'];
}

async function configuredEngine(command: string, searchPath: string): Promise<Engine> {
  const isPath = command.includes('/') || command.includes(sep);
  const found = isPath ? command : await onPath(command, searchPath);
  if (found === undefined || !(await isExecutable(found))) {
    const problem = isPath ? 'does not exist or may not be executed' : 'is not on PATH';
    throw new Fault(
      'BAD_CONFIG',
      `the configured engine ${command} ${problem}; correct the path, or remove the setting to use PATH`,
      {details: {command}},
    );
  }
  const isMultiCall = basename(found, executableSuffix) === 'llama';
  return {command: found, leadingArguments: isMultiCall ? ['serve'] : [], source: 'config'};
}

async function onPath(name: string, searchPath: string): Promise<string | undefined> {
  const folders = searchPath.split(delimiter).filter(folder => folder !== ''); // else the current folder would count
  const files = folders.map(folder => join(folder, name.endsWith(executableSuffix) ? name : name + executableSuffix));
  for (const file of files) if (await isExecutable(file)) return file;
  return undefined;
}

async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    return false;
  }
}

/** Other programs are called `llama` too; one that is not llama.cpp must not hide the installed engine. */
async function versionIfEngine(
  engine: Engine,
  deps: {readonly clock: Clock},
  signal: AbortSignal | undefined,
): Promise<string | undefined> {
  try {
    return await engineVersion(engine, deps, signal);
  } catch {
    signal?.throwIfAborted();
    return undefined;
  }
}
