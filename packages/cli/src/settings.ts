import {z} from 'zod';
import type {LogLevel, MeshRole, Policy, Spread} from '@hearsay/core';
import {bodyBytesMax} from '@hearsay/core';
import {byteCount, duration, list, name, pairs, path, policy, stores, wholeNumber, yesOrNo} from './setting-kinds.ts';
import {externalServers} from './external-servers.ts';
import type {ExternalServer} from './external-servers.ts';

/**
 * Every setting by its key in the config file: what it may be. The manual and the error messages are made from this
 * table.
 */
const schemas = {
  name: name(),
  data_dir: path(),
  drain_limit: duration(),
  log_level: z.enum(['debug', 'info', 'warn', 'error'], {error: 'debug, info, warn or error'}),
  'gateway.host': z.string({error: 'a host name or address'}).regex(/^[^\s/@?#]+$/u, {error: 'a host name or address'}),
  'gateway.port': wholeNumber(0, 65_535),
  'gateway.require_key': yesOrNo(),
  'gateway.insecure': yesOrNo(),
  'gateway.ollama_port': yesOrNo(),
  'gateway.hostnames': list('a list of host names'),
  'gateway.cors_origins': list('a list of origins'),
  'gateway.keys': list('a list of keys'),
  'gateway.aliases': pairs('a list of NAME=MODEL'),
  'gateway.default_model': z.string({error: 'the name of a model'}).min(1, {error: 'the name of a model'}),
  'gateway.body_limit_mb': wholeNumber(1, bodyBytesMax / 1024 / 1024),
  'gateway.tls_cert': path(),
  'gateway.tls_key': path(),
  'mesh.name': name(),
  'mesh.port': wholeNumber(0, 65_535),
  'mesh.peers': list('a list of addresses'),
  'mesh.relay': yesOrNo(),
  'mesh.announce': list('a list of addresses'),
  'mesh.role': z.enum(['both', 'use', 'serve'], {error: 'both, use or serve'}),
  'routing.spread': z.enum(['auto', 'off'], {error: 'auto or off'}),
  'routing.first_byte_min': duration(),
  'routing.first_byte_max': duration(),
  'routing.policy': policy(),
  'models.folders': list('a list of folders'),
  'models.stores': stores(),
  'models.demo': yesOrNo(),
  'journal.days': wholeNumber(1, 3650),
  'journal.megabytes': wholeNumber(1, 1_000_000),
  'engine.path': path(),
  'engine.slots': wholeNumber(1, 256),
  'engine.context': wholeNumber(128, 10_000_000),
  'engine.memory': byteCount(),
  'engine.keep_alive': duration(),
  'engine.keep_alive_min': duration(),
  'engine.keep_alive_max': duration(),
  'engine.preload': list('a list of models'),
  'engine.remote_control': yesOrNo(),
  'engine.threads': wholeNumber(1, 1024),
  'engine.extra_args': list('a list of arguments'),
  'engines.external': externalServers(),
} satisfies Record<SettingKey, z.ZodType>;

/** Values that have passed; a setting that nobody gave is absent. */
export interface Settings {
  readonly name?: string | undefined;
  readonly data_dir?: string | undefined;
  readonly drain_limit?: number | undefined;
  readonly log_level?: LogLevel | undefined;
  readonly 'gateway.host'?: string | undefined;
  readonly 'gateway.port'?: number | undefined;
  readonly 'gateway.require_key'?: boolean | undefined;
  readonly 'gateway.insecure'?: boolean | undefined;
  readonly 'gateway.ollama_port'?: boolean | undefined;
  readonly 'gateway.hostnames'?: readonly string[] | undefined;
  readonly 'gateway.cors_origins'?: readonly string[] | undefined;
  readonly 'gateway.keys'?: readonly string[] | undefined;
  readonly 'gateway.aliases'?: Readonly<Record<string, string>> | undefined;
  readonly 'gateway.default_model'?: string | undefined;
  readonly 'gateway.body_limit_mb'?: number | undefined;
  readonly 'gateway.tls_cert'?: string | undefined;
  readonly 'gateway.tls_key'?: string | undefined;
  readonly 'mesh.name'?: string | undefined;
  readonly 'mesh.port'?: number | undefined;
  readonly 'mesh.peers'?: readonly string[] | undefined;
  readonly 'mesh.relay'?: boolean | undefined;
  readonly 'mesh.announce'?: readonly string[] | undefined;
  readonly 'mesh.role'?: MeshRole | undefined;
  readonly 'routing.spread'?: Spread | undefined;
  readonly 'routing.first_byte_min'?: number | undefined;
  readonly 'routing.first_byte_max'?: number | undefined;
  readonly 'routing.policy'?: Policy | undefined;
  readonly 'models.folders'?: readonly string[] | undefined;
  readonly 'models.stores'?: readonly string[] | undefined;
  readonly 'models.demo'?: boolean | undefined;
  readonly 'journal.days'?: number | undefined;
  readonly 'journal.megabytes'?: number | undefined;
  readonly 'engine.path'?: string | undefined;
  readonly 'engine.slots'?: number | undefined;
  readonly 'engine.context'?: number | undefined;
  readonly 'engine.memory'?: number | undefined;
  readonly 'engine.keep_alive'?: number | undefined;
  readonly 'engine.keep_alive_min'?: number | undefined;
  readonly 'engine.keep_alive_max'?: number | undefined;
  readonly 'engine.preload'?: readonly string[] | undefined;
  readonly 'engine.remote_control'?: boolean | undefined;
  readonly 'engine.threads'?: number | undefined;
  readonly 'engine.extra_args'?: readonly string[] | undefined;
  readonly 'engines.external'?: readonly ExternalServer[] | undefined;
}

export type SettingKey = keyof Settings;

/** Values as some source gives them: not judged yet. */
export type RawSettings = {readonly [Key in SettingKey]?: unknown};

export function isSettingKey(key: string): key is SettingKey {
  return Object.hasOwn(schemas, key);
}

export const settingKeys: readonly SettingKey[] = Object.keys(schemas).filter(isSettingKey);

const table = z.object(schemas).partial();

export type Judged =
  | {readonly kind: 'good'; readonly settings: Settings}
  | {readonly kind: 'bad'; readonly problems: readonly {readonly key: SettingKey; readonly must: string}[]};

/** Parses raw values; of a bad one says what it must be. */
export function judgeSettings(raw: RawSettings): Judged {
  const parsed = table.safeParse(raw);
  if (parsed.success) return {kind: 'good', settings: parsed.data};
  const problems = parsed.error.issues.flatMap(({path: [key], message}) =>
    typeof key === 'string' && isSettingKey(key) ? [{key, must: message}] : [],
  );
  return {kind: 'bad', problems};
}
