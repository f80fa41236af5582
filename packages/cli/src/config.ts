import {isAbsolute, join, resolve} from 'node:path';
import type {LogLevel, MeshRole, Policy, Spread, Workload} from '@hearsay/core';
import {Fault} from '@hearsay/core';
import type {StorePlace} from '@hearsay/models';
import {defaultGatewayPort, defaultMeshPort, ollamaPort} from './addresses.ts';
import type {ExternalServer} from './external-servers.ts';
import {parseHosted} from './hosted-settings.ts';
import type {HostedSettings} from './hosted-settings.ts';
import {parseModelWishes} from './model-settings.ts';
import type {ModelWishes} from './model-settings.ts';
import {settingFacts} from './setting-facts.ts';
import {isSettingKey, judgeSettings, settingKeys} from './settings.ts';
import type {RawSettings, SettingKey, Settings} from './settings.ts';
import {storeNames, storePlaces} from './store-places.ts';
import {suggest} from './suggest.ts';
import type {Variables} from './system.ts';
import {parseWorkloads} from './workload-settings.ts';

/** With the five seconds of a clean end it stays below the ten after which many give up waiting and kill. */
const drainMsDefault = 4000;
const drainMsMost = 24 * 60 * 60_000;

/** What one daemon runs with. */
export interface Config {
  readonly name: string;
  readonly dataFolder: string;
  readonly drainMsMax: number;
  readonly logLevel: LogLevel;
  readonly gateway: {
    readonly host: string;
    readonly port: number;
    /** Nobody chose the port, so that the next free one will do. */
    readonly anyPort: boolean;
    /** Also programs of this machine need a key. */
    readonly requireKey: boolean;
    readonly insecure: boolean;
    /** Serve this port too, when it is free. */
    readonly alsoPort: number | undefined;
    readonly hostnames: readonly string[];
    readonly corsOrigins: readonly string[];
    readonly keys: readonly string[];
    readonly aliases: Readonly<Record<string, string>>;
    readonly defaultModel: string | undefined;
    readonly bodyBytesMax: number;
    readonly tls: {readonly certFile: string; readonly keyFile: string} | undefined;
  };
  readonly mesh: {
    readonly name: string;
    readonly port: number;
    readonly peers: readonly string[];
    readonly relay: boolean;
    readonly announce: readonly string[];
    readonly role: MeshRole;
  };
  readonly routing: {
    readonly spread: Spread;
    readonly firstByteMsMin: number;
    readonly firstByteMsMax: number;
    /** What holds for requests for which nobody wishes anything else. */
    readonly policy: Policy | undefined;
  };
  readonly models: {
    readonly folders: readonly string[];
    /** Stores of other programs, and our own. */
    readonly stores: readonly StorePlace[];
    readonly demo: boolean;
  };
  readonly workloads: readonly Workload[];
  readonly journal: {readonly keepMs: number; readonly sizeBytesMax: number};
  readonly engine: {
    /** undefined: find one, or install one. */
    readonly path: string | undefined;
    readonly slots: number;
    /** undefined: what fits. */
    readonly contextMax: number | undefined;
    /** undefined: what the machine has. */
    readonly memoryBytes: number | undefined;
    /** What the owner wants for single models, by name. */
    readonly models: Readonly<Record<string, ModelWishes>>;
    readonly keepAliveMs: number;
    readonly keepAliveMsMin: number;
    readonly keepAliveMsMax: number;
    readonly preload: readonly string[];
    readonly remoteControl: boolean;
    readonly threads: number | undefined;
    readonly extraArguments: readonly string[];
  };
  readonly externalEngines: readonly ExternalServer[];
  readonly hosted: readonly HostedSettings[];
}

/** Some settings and where they come from, for messages and for relative paths. */
export interface SettingsSource {
  /** For messages: `in /home/ada/.config/hearsay/config.toml`, `on the command line`. */
  readonly where: string;
  readonly settings: RawSettings;
  /** What applications may ask for instead of a model; only the file has any. */
  readonly workloads?: readonly Workload[];
  /** Services outside the mesh; only the file has any. */
  readonly hosted?: readonly HostedSettings[];
  /** Relative paths start here. */
  readonly folder: string;
  readonly models?: Readonly<Record<string, ModelWishes>>;
}

export interface Surroundings {
  readonly home: string;
  readonly machine: string;
  /** The data folder when nothing says otherwise. */
  readonly dataFolder: string;
  /** Of the environment, for what other programs keep where. */
  readonly variables: Variables;
  readonly platform: NodeJS.Platform;
}

/** Settings of the environment. An empty variable counts as none, except that an empty list is a list. */
export function settingsOfVariables(variables: Variables, folder: string): SettingsSource {
  const entries = settingKeys.flatMap(key => {
    const value = variables[settingFacts[key].variable];
    if (value === undefined || (value === '' && !listKeys.has(key))) return [];
    return [[key, value] as const];
  });
  return {where: 'in the environment', settings: Object.fromEntries(entries), folder};
}

const listKeys: ReadonlySet<SettingKey> = new Set([
  'gateway.hostnames',
  'gateway.cors_origins',
  'gateway.keys',
  'gateway.aliases',
  'mesh.peers',
  'mesh.announce',
  'models.folders',
  'models.stores',
  'engine.preload',
  'engine.extra_args',
  'engines.external',
]);

/** Settings of a parsed TOML file; throws BAD_CONFIG for a key that no setting has. */
export function settingsOfTable(toml: Readonly<Record<string, unknown>>, file: string, folder: string): SettingsSource {
  const settings: Partial<Record<SettingKey, unknown>> = {};
  const models: [string, ModelWishes][] = [];
  const unknown: string[] = [];
  const {workloads, hosted, ...sections} = toml;
  for (const [key, value] of flatten(sections)) {
    if (isSettingKey(key)) settings[key] = value;
    else if (key.startsWith('models.') && isTable(value)) {
      const name = key.slice('models.'.length);
      models.push([name, parseModelWishes(name, value, `in ${file}`)]);
    } else unknown.push(describeUnknown(key));
  }
  if (unknown.length > 0) throw new Fault('BAD_CONFIG', `${file}: ${unknown.join('\n')}`, {details: {file}});
  const tables = {
    models: Object.fromEntries(models),
    workloads: parseWorkloads(workloads, file),
    hosted: parseHosted(hosted, file),
  };
  return {where: `in ${file}`, settings, folder, ...tables};
}

/**
 * Combines the sources, the strongest first, and fills in the defaults; throws BAD_CONFIG that names key and source.
 */
export function toConfig(sources: readonly SettingsSource[], surroundings: Surroundings): Config {
  const settings: Settings = Object.assign({}, ...sources.toReversed().map(source => judge(source, surroundings.home)));
  const dataFolder = settings.data_dir ?? surroundings.dataFolder;
  return {
    name: settings.name ?? surroundings.machine,
    dataFolder,
    drainMsMax: Math.min(settings.drain_limit ?? drainMsDefault, drainMsMost),
    logLevel: settings.log_level ?? 'info',
    gateway: {
      host: settings['gateway.host'] ?? '127.0.0.1',
      port: settings['gateway.port'] ?? defaultGatewayPort,
      anyPort: settings['gateway.port'] === undefined,
      requireKey: settings['gateway.require_key'] ?? false,
      insecure: settings['gateway.insecure'] ?? false,
      alsoPort: settings['gateway.ollama_port'] === true ? ollamaPort : undefined,
      hostnames: settings['gateway.hostnames'] ?? [],
      corsOrigins: settings['gateway.cors_origins'] ?? [],
      keys: settings['gateway.keys'] ?? [],
      aliases: settings['gateway.aliases'] ?? {},
      defaultModel: settings['gateway.default_model'],
      bodyBytesMax: (settings['gateway.body_limit_mb'] ?? 64) * 1024 * 1024,
      tls: tlsOf(settings),
    },
    mesh: {
      name: settings['mesh.name'] ?? 'home',
      port: settings['mesh.port'] ?? defaultMeshPort,
      peers: settings['mesh.peers'] ?? [],
      relay: settings['mesh.relay'] ?? false,
      announce: settings['mesh.announce'] ?? [],
      role: settings['mesh.role'] ?? 'both',
    },
    routing: {
      spread: settings['routing.spread'] ?? 'auto',
      firstByteMsMin: settings['routing.first_byte_min'] ?? 20_000,
      firstByteMsMax: settings['routing.first_byte_max'] ?? 10 * 60_000,
      policy: settings['routing.policy'],
    },
    models: {
      folders: settings['models.folders'] ?? [],
      stores: [
        {kind: 'hearsay', path: join(dataFolder, 'models')},
        ...storePlaces(settings['models.stores'] ?? storeNames, surroundings),
      ],
      demo: settings['models.demo'] ?? true,
    },
    workloads: sources.flatMap(source => source.workloads ?? []),
    journal: {
      keepMs: (settings['journal.days'] ?? 14) * 86_400_000,
      sizeBytesMax: (settings['journal.megabytes'] ?? 200) * 1e6,
    },
    engine: {
      path: settings['engine.path'],
      slots: settings['engine.slots'] ?? 4,
      contextMax: settings['engine.context'],
      memoryBytes: settings['engine.memory'],
      models: Object.assign({}, ...sources.toReversed().map(({models}) => models)),
      keepAliveMs: settings['engine.keep_alive'] ?? 5 * 60_000,
      keepAliveMsMin: settings['engine.keep_alive_min'] ?? 0,
      keepAliveMsMax: settings['engine.keep_alive_max'] ?? Infinity,
      preload: settings['engine.preload'] ?? [],
      remoteControl: settings['engine.remote_control'] ?? true,
      threads: settings['engine.threads'],
      extraArguments: settings['engine.extra_args'] ?? [],
    },
    externalEngines: settings['engines.external'] ?? [],
    hosted: sources.flatMap(source => source.hosted ?? []),
  };
}

function tlsOf({'gateway.tls_cert': certFile, 'gateway.tls_key': keyFile}: Settings): Config['gateway']['tls'] {
  if (certFile !== undefined && keyFile !== undefined) return {certFile, keyFile};
  if (certFile === undefined && keyFile === undefined) return undefined;
  throw new Fault('BAD_CONFIG', 'gateway.tls_cert and gateway.tls_key need each other; set both, or none');
}

function judge({where, settings, folder}: SettingsSource, home: string): Settings {
  const judged = judgeSettings(settings);
  if (judged.kind === 'bad') {
    const problems = judged.problems.map(
      ({key, must}) =>
        `${key} ${where} must be ${must}, not ${key === 'gateway.keys' ? 'what is there' : JSON.stringify(settings[key])}`,
    );
    throw new Fault('BAD_CONFIG', problems.join('\n'), {details: {keys: judged.problems.map(({key}) => key)}});
  }
  return withPaths(judged.settings, path => absolute(path, folder, home));
}

function withPaths(settings: Settings, path: (text: string) => string): Settings {
  const {'gateway.tls_cert': certificate, 'gateway.tls_key': key} = settings;
  const {data_dir: data, 'models.folders': folders, 'models.stores': stores, 'engine.path': engine} = settings;
  return {
    ...settings,
    ...(data !== undefined && {data_dir: path(data)}),
    ...(certificate !== undefined && {'gateway.tls_cert': path(certificate)}),
    ...(key !== undefined && {'gateway.tls_key': path(key)}),
    ...(folders !== undefined && {'models.folders': folders.map(path)}),
    ...(stores !== undefined && {'models.stores': stores.map(store => store.replace(/(?<==).+/u, path))}),
    // A bare word is a command for PATH.
    ...(engine !== undefined && {'engine.path': /[\\/]/u.test(engine) ? path(engine) : engine}),
  };
}

function absolute(path: string, folder: string, home: string): string {
  if (path === '~' || path.startsWith('~/')) return join(home, path.slice(1));
  return isAbsolute(path) ? path : resolve(folder, path);
}

function flatten(toml: Readonly<Record<string, unknown>>): readonly (readonly [string, unknown])[] {
  return Object.entries(toml).flatMap(([section, value]): (readonly [string, unknown])[] =>
    isTable(value) ? Object.entries(value).map(([key, inner]) => [`${section}.${key}`, inner]) : [[section, value]],
  );
}

function isTable(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

function describeUnknown(key: string): string {
  const meant =
    suggest(key, settingKeys) ?? settingKeys.find(known => known.endsWith(`.${key}`)) ?? suggestSection(key);
  return `unknown key \`${key}\`${meant === undefined ? '' : `; did you mean \`${meant}\`?`}`;
}

/** `[modles."qwen3"]`: the section is what is wrong. */
function suggestSection(key: string): string | undefined {
  const [section = '', ...rest] = key.split('.');
  const meant = suggest(section, sections);
  return meant === undefined || meant === section ? undefined : [meant, ...rest].join('.');
}

/** Of the file: those with settings, and those with tables of the owner's own names. */
const sections: readonly string[] = [
  ...new Set(settingKeys.flatMap(key => (key.includes('.') ? [key.replace(/\..*/u, '')] : []))),
  'workloads',
  'hosted',
];
