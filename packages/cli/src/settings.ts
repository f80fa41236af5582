import {z} from 'zod';
import type {LogLevel, Policy} from '@hearsay/core';
import {duration, list, name, path, policy, wholeNumber, yesOrNo} from './setting-values.ts';

/**
 * Every setting by its key in the config file: what it may be. The manual and the error messages are made from this
 * table.
 */
const schemas = {
  name: name(),
  data_dir: path(),
  log_level: z.enum(['debug', 'info', 'warn', 'error'], {error: 'debug, info, warn or error'}),
  'gateway.host': z.string({error: 'a host name or address'}).regex(/^[^\s/@?#]+$/u, {error: 'a host name or address'}),
  'gateway.port': wholeNumber(0, 65_535),
  'gateway.require_key': yesOrNo(),
  'gateway.insecure': yesOrNo(),
  'gateway.hostnames': list('a list of host names'),
  'gateway.cors_origins': list('a list of origins'),
  'mesh.name': name(),
  'mesh.port': wholeNumber(0, 65_535),
  'mesh.peers': list('a list of addresses'),
  'models.folders': list('a list of folders'),
  'models.demo': yesOrNo(),
  'routing.policy': policy(),
  'journal.days': wholeNumber(1, 3650),
  'journal.megabytes': wholeNumber(1, 1_000_000),
  'engine.path': path(),
  'engine.slots': wholeNumber(1, 256),
  'engine.context': wholeNumber(128, 10_000_000),
  'engine.keep_alive': duration(),
  'engine.threads': wholeNumber(1, 1024),
  'engine.extra_args': list('a list of arguments'),
} satisfies Record<SettingKey, z.ZodType>;

/** Values that have passed; a setting that nobody gave is absent. */
export interface Settings {
  readonly name?: string | undefined;
  readonly data_dir?: string | undefined;
  readonly log_level?: LogLevel | undefined;
  readonly 'gateway.host'?: string | undefined;
  readonly 'gateway.port'?: number | undefined;
  readonly 'gateway.require_key'?: boolean | undefined;
  readonly 'gateway.insecure'?: boolean | undefined;
  readonly 'gateway.hostnames'?: readonly string[] | undefined;
  readonly 'gateway.cors_origins'?: readonly string[] | undefined;
  readonly 'mesh.name'?: string | undefined;
  readonly 'mesh.port'?: number | undefined;
  readonly 'mesh.peers'?: readonly string[] | undefined;
  readonly 'models.folders'?: readonly string[] | undefined;
  readonly 'models.demo'?: boolean | undefined;
  readonly 'routing.policy'?: Policy | undefined;
  readonly 'journal.days'?: number | undefined;
  readonly 'journal.megabytes'?: number | undefined;
  readonly 'engine.path'?: string | undefined;
  readonly 'engine.slots'?: number | undefined;
  readonly 'engine.context'?: number | undefined;
  readonly 'engine.keep_alive'?: number | undefined;
  readonly 'engine.threads'?: number | undefined;
  readonly 'engine.extra_args'?: readonly string[] | undefined;
}

export type SettingKey = keyof Settings;

/** Values as some source gives them: not judged yet. */
export type RawSettings = {readonly [Key in SettingKey]?: unknown};

interface SettingFacts {
  /** Environment variable. */
  readonly variable: string;
  /** Flag of `hearsay serve`, for the manual. */
  readonly flag: string | undefined;
  /** What holds when nobody gives it, for the manual. */
  readonly otherwise: string;
  /** A value as it could stand in the file, in TOML. */
  readonly example: string;
  /** For the manual: what it is for, in sentences. */
  readonly about: string;
}

export const settingFacts: Readonly<Record<SettingKey, SettingFacts>> = {
  name: {
    variable: 'HEARSAY_NAME',
    flag: '--name NAME',
    otherwise: 'the host name without its domain',
    example: '"spark"',
    about: 'What people call this node. It need not be unique; the id of a node is its key.',
  },
  data_dir: {
    variable: 'HEARSAY_DATA_DIR',
    flag: '--data-dir DIR',
    otherwise: '`$XDG_DATA_HOME/hearsay`, mostly `~/.local/share/hearsay`',
    example: '"~/hearsay"',
    about: 'Holds the key of the node, known digests and the lock. Two daemons on one machine need two of them.',
  },
  log_level: {
    variable: 'HEARSAY_LOG_LEVEL',
    flag: '--log-level LEVEL',
    otherwise: '`info`',
    example: '"info"',
    about: '`debug`, `info`, `warn` or `error`. The log goes to stderr, as JSON lines where that is no terminal.',
  },
  'gateway.host': {
    variable: 'HEARSAY_GATEWAY_HOST',
    flag: '--gateway HOST:PORT',
    otherwise: '`127.0.0.1`',
    example: '"127.0.0.1"',
    about:
      'Address on which HTTP clients are served. Other machines need a key (`hearsay key create`), or `gateway.insecure`.',
  },
  'gateway.port': {
    variable: 'HEARSAY_GATEWAY_PORT',
    flag: '--gateway HOST:PORT',
    otherwise: '`4327`, or the next free one when it is taken',
    example: '4327',
    about: 'A port that is given is used or refused, never replaced by another. `0` takes any free one.',
  },
  'gateway.require_key': {
    variable: 'HEARSAY_REQUIRE_KEY',
    flag: undefined,
    otherwise: '`false`',
    example: 'false',
    about:
      'Programs of this machine need a key too, also the commands: they send that of `HEARSAY_KEY`. Behind a proxy on this machine, say yes.',
  },
  'gateway.insecure': {
    variable: 'HEARSAY_GATEWAY_INSECURE',
    flag: undefined,
    otherwise: '`false`',
    example: 'false',
    about: 'Lets every machine that reaches `gateway.host` use this node without a key.',
  },
  'gateway.hostnames': {
    variable: 'HEARSAY_GATEWAY_HOSTNAMES',
    flag: undefined,
    otherwise: 'none',
    example: '["llm.example"]',
    about: 'Names under which clients call this node, beside localhost, `*.local`, `*.internal` and private addresses.',
  },
  'gateway.cors_origins': {
    variable: 'HEARSAY_CORS_ORIGINS',
    flag: undefined,
    otherwise: 'none',
    example: '["https://chat.example"]',
    about: 'Web pages of other machines that may call this node; `*` is every page.',
  },
  'mesh.name': {
    variable: 'HEARSAY_MESH',
    flag: '--mesh NAME',
    otherwise: '`home`',
    example: '"home"',
    about: 'Only nodes with the same mesh name meet.',
  },
  'mesh.port': {
    variable: 'HEARSAY_MESH_PORT',
    flag: '--mesh-port PORT',
    otherwise: '`4328`, or the next free one when it is taken',
    example: '4328',
    about: 'TCP port for the other nodes. `0` takes any free one.',
  },
  'mesh.peers': {
    variable: 'HEARSAY_PEERS',
    flag: '--peer ADDR (again for each)',
    otherwise: 'none: nodes on one LAN find each other',
    example: '["spark", "10.0.0.5:4328"]',
    about:
      'Nodes to call where multicast does not reach: `host`, `host:port`, `[v6]:port` or a multiaddr, as an array or with ' +
      'commas between. Naming a peer on one side is enough. `HEARSAY_PEERS=` (empty) leaves those of the file out for one start.',
  },
  'models.folders': {
    variable: 'HEARSAY_MODELS',
    flag: '--models DIR…',
    otherwise: 'none',
    example: '["~/models"]',
    about: 'Folders with `.gguf` files. They are read where they lie and never changed.',
  },
  'models.demo': {
    variable: 'HEARSAY_DEMO',
    flag: undefined,
    otherwise: '`true`',
    example: 'true',
    about: 'Offers the toy model that ships with hearsay while this machine has no other.',
  },
  'routing.policy': {
    variable: 'HEARSAY_POLICY',
    flag: undefined,
    otherwise: '`auto`',
    example: '"prefer=spark"',
    about:
      'Where requests run for which nobody wishes anything else: `auto`, `prefer=NODE,…` or `pin=NODE,…`, and `;exclude=NODE,…`.',
  },
  'journal.days': {
    variable: 'HEARSAY_JOURNAL_DAYS',
    flag: undefined,
    otherwise: '`14`',
    example: '14',
    about: 'How long `hearsay requests` and `hearsay why` remember. What requests and answers say is never kept.',
  },
  'journal.megabytes': {
    variable: 'HEARSAY_JOURNAL_MEGABYTES',
    flag: undefined,
    otherwise: '`200`',
    example: '200',
    about: 'How large the journal may become. The oldest requests go first.',
  },
  'engine.path': {
    variable: 'HEARSAY_ENGINE',
    flag: '--engine PATH',
    otherwise: 'found on `PATH`, else installed',
    example: '"/usr/local/bin/llama-server"',
    about: 'The llama-server to run.',
  },
  'engine.slots': {
    variable: 'HEARSAY_SLOTS',
    flag: undefined,
    otherwise: '`4`',
    example: '4',
    about: 'Requests that one model answers at the same time. Each slot has a context of its own.',
  },
  'engine.context': {
    variable: 'HEARSAY_CONTEXT',
    flag: undefined,
    otherwise: '`8192`',
    example: '8192',
    about: 'Most tokens of context that one slot gets; less when the model was trained for less.',
  },
  'engine.keep_alive': {
    variable: 'HEARSAY_KEEP_ALIVE',
    flag: undefined,
    otherwise: '`5m`',
    example: '"5m"',
    about:
      'How long a model stays loaded without requests: `5m`, `1h30m`, `300` (seconds), `0` (not at all), `-1` (for ever).',
  },
  'engine.threads': {
    variable: 'HEARSAY_THREADS',
    flag: undefined,
    otherwise: 'as llama-server chooses',
    example: '8',
    about: 'CPU threads for one model.',
  },
  'engine.extra_args': {
    variable: 'HEARSAY_ENGINE_ARGS',
    flag: undefined,
    otherwise: 'none',
    example: '["--flash-attn", "on"]',
    about: 'Further arguments for llama-server.',
  },
};

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
