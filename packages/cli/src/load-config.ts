import {readFile} from 'node:fs/promises';
import {dirname, join, resolve} from 'node:path';
import {parse, TomlError} from 'smol-toml';
import {Fault, hasCode} from '@hearsay/core';
import type {Config, SettingsSource} from './config.ts';
import {settingsOfTable, settingsOfVariables, toConfig} from './config.ts';
import {standardFolders} from './folders.ts';
import type {RawSettings} from './settings.ts';
import type {Variables} from './system.ts';
import {machineName} from './system.ts';

export interface ConfigRequest {
  /** Settings from flags. */
  readonly flags: RawSettings;
  /** The config file to read; undefined: the standard one, which may be missing. */
  readonly file: string | undefined;
  readonly variables: Variables;
  readonly home: string;
  readonly workingFolder: string;
}

/**
 * Reads the settings: flags before environment before file before defaults. Throws BAD_CONFIG that says what to
 * change.
 */
export async function loadConfig(request: ConfigRequest): Promise<Config> {
  const {variables, home, workingFolder} = request;
  const folders = standardFolders(variables, home);
  const named = request.file ?? (variables['HEARSAY_CONFIG'] || undefined);
  const file = named === undefined ? join(folders.config, 'config.toml') : resolve(workingFolder, named);
  const sources: readonly SettingsSource[] = [
    {where: 'on the command line', settings: request.flags, folder: workingFolder},
    settingsOfVariables(variables, workingFolder),
    ...(await settingsOfFile(file, {mayBeMissing: named === undefined})),
  ];
  return toConfig(sources, {
    home,
    machine: machineName(),
    dataFolder: folders.data,
    variables,
    platform: process.platform,
  });
}

async function settingsOfFile(file: string, options: {readonly mayBeMissing: boolean}): Promise<SettingsSource[]> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (cause) {
    if (options.mayBeMissing && hasCode(cause, 'ENOENT')) return [];
    const why = hasCode(cause, 'ENOENT') ? 'there is no such file' : 'it cannot be read';
    throw new Fault('BAD_CONFIG', `cannot use the config file ${file}: ${why}`, {cause, details: {file}});
  }
  return [settingsOfTable(parseToml(text, file), file, dirname(file))];
}

function parseToml(text: string, file: string): Readonly<Record<string, unknown>> {
  try {
    return parse(text);
  } catch (cause) {
    if (!(cause instanceof TomlError)) throw cause;
    const problem = cause.message.split('\n', 1)[0] ?? '';
    const message = `${file}:${cause.line}:${cause.column}: ${problem}; see docs/configuration.md`;
    throw new Fault('BAD_CONFIG', message, {cause, details: {file}});
  }
}
