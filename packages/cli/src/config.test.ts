import test from 'ava';
import {Fault} from '@hearsay/core';
import {settingsOfTable, settingsOfVariables, toConfig} from './config.ts';
import type {Config, SettingsSource} from './config.ts';
import type {RawSettings} from './settings.ts';

const surroundings = {
  home: '/home/ada',
  machine: 'mac',
  dataFolder: '/home/ada/.local/share/hearsay',
  variables: {},
  platform: 'linux',
} as const;
const file = '/etc/hearsay/config.toml';

const flags = (settings: RawSettings): SettingsSource => ({
  where: 'on the command line',
  settings,
  folder: '/somewhere',
});
const inFile = (toml: Record<string, unknown>): SettingsSource => settingsOfTable(toml, file, '/etc/hearsay');
const config = (...sources: readonly SettingsSource[]): Config => toConfig(sources, surroundings);

test('S2: with no setting at all everything has a value', t => {
  t.like(config(), {
    name: 'mac',
    dataFolder: '/home/ada/.local/share/hearsay',
    gateway: {host: '127.0.0.1', port: 4327, anyPort: true, insecure: false},
    mesh: {name: 'home', port: 4328, peers: [], relay: false, announce: [], role: 'both'},
    models: {folders: [], demo: true},
    engine: {
      path: undefined,
      slots: 4,
      contextMax: undefined,
      memoryBytes: undefined,
      models: {},
      keepAliveMs: 300_000,
    },
  });
});

test('flags win over the environment, the environment over the file', t => {
  const environment = settingsOfVariables({HEARSAY_NAME: 'env', HEARSAY_MESH: 'env'}, '/somewhere');
  const toml = {name: 'file', mesh: {name: 'file', port: 1}};
  t.like(config(flags({name: 'flag'}), environment, inFile(toml)), {name: 'flag', mesh: {name: 'env', port: 1}});
});

test('S3: static peers are an array or a text with commas', t => {
  t.deepEqual(config(inFile({mesh: {peers: ['a', 'b:1']}})).mesh.peers, ['a', 'b:1']);
  t.deepEqual(config(inFile({mesh: {peers: 'a, b:1,'}})).mesh.peers, ['a', 'b:1']);
});

test('S10: an empty HEARSAY_PEERS leaves the peers of the file out', t => {
  const toml = inFile({mesh: {peers: ['a']}});
  t.deepEqual(config(settingsOfVariables({HEARSAY_PEERS: ''}, '/somewhere'), toml).mesh.peers, []);
  t.deepEqual(config(settingsOfVariables({}, '/somewhere'), toml).mesh.peers, ['a']);
});

test('an empty variable that is no list counts as none', t => {
  t.is(config(settingsOfVariables({HEARSAY_NAME: ''}, '/somewhere'), inFile({name: 'file'})).name, 'file');
});

test('values of the environment are texts and become what they mean', t => {
  const variables = {
    HEARSAY_GATEWAY_PORT: '8080',
    HEARSAY_DEMO: 'no',
    HEARSAY_KEEP_ALIVE: '-1',
    HEARSAY_MODELS: 'a,/b',
  };
  const {gateway, models, engine} = config(settingsOfVariables(variables, '/somewhere'));
  t.like(
    {gateway, models, engine},
    {
      gateway: {port: 8080, anyPort: false},
      models: {demo: false, folders: ['/somewhere/a', '/b']},
      engine: {keepAliveMs: Infinity},
    },
  );
});

test('paths start where they were written, and ~ is the home folder', t => {
  const toml = inFile({data_dir: '~/data', models: {folders: ['models']}, engine: {path: 'llama-server'}});
  t.like(config(toml), {
    dataFolder: '/home/ada/data',
    models: {folders: ['/etc/hearsay/models']},
    engine: {path: 'llama-server'}, // a command for PATH, no path
  });
  t.is(config(flags({'engine.path': './llama-server'})).engine.path, '/somewhere/llama-server');
});

const unknownKeys: readonly (readonly [Record<string, unknown>, string])[] = [
  [{gatewy: {port: 1}}, 'unknown key `gatewy.port`; did you mean `gateway.port`?'],
  [{mesh: {peer: []}}, 'unknown key `mesh.peer`; did you mean `mesh.peers`?'],
  [{port: 1}, 'unknown key `port`; did you mean `gateway.port`?'],
  [{engine: {keepalive: 1}}, 'unknown key `engine.keepalive`; did you mean `engine.keep_alive`?'],
  [{nmae: 'ada'}, 'unknown key `nmae`; did you mean `name`?'],
  [{modles: {qwen3: {keep: true}}}, 'unknown key `modles.qwen3`; did you mean `models.qwen3`?'],
  [{gatewya: 1}, 'unknown key `gatewya`; did you mean `gateway`?'],
  [{models: {m: 1}}, 'unknown key `models.m`'],
  [{colour: 'red'}, 'unknown key `colour`'],
];
for (const [toml, message] of unknownKeys) {
  test(`${JSON.stringify(toml)} is refused: ${message}`, t => {
    const fault = t.throws(() => inFile(toml), {instanceOf: Fault});
    t.is(fault?.code, 'BAD_CONFIG');
    t.is(fault?.message, `${file}: ${message}`);
  });
}

test('a bad value names its key, its source, what it must be and what it is', t => {
  const {message} = t.throws(() => config(inFile({gateway: {port: 70_000}}))) ?? {};
  t.is(message, `gateway.port in ${file} must be a whole number from 0 to 65535, not 70000`);
  t.throws(() => config(flags({'engine.keep_alive': 'soon'})), {
    message:
      'engine.keep_alive on the command line must be a duration such as 5m, 300 (seconds), 0 or -1 (for ever), not "soon"',
  });
  t.throws(() => config(settingsOfVariables({HEARSAY_SLOTS: 'many'}, '/')), {
    message: 'engine.slots in the environment must be a whole number from 1 to 256, not "many"',
  });
});

test('all bad values of a source are named at once', t => {
  const {message} = t.throws(() => config(inFile({log_level: 'loud', mesh: {name: 'a,b'}, models: {demo: 3}})));
  t.regex(message, /log_level .* must be debug, info, warn or error, not "loud"/u);
  t.regex(message, /mesh\.name .* not "a,b"/u);
  t.regex(message, /models\.demo .* must be true or false, not 3/u);
});

test('a section that is a value, or a value that is a section, is refused', t => {
  t.throws(() => inFile({mesh: 'home'}), {message: /unknown key `mesh`/u});
  t.throws(() => config(inFile({name: {first: 'ada'}})), {message: /unknown key `name.first`/u});
});

test('stores can be left out and pointed elsewhere; our own is always there', t => {
  const stores = (source: SettingsSource): readonly string[] => config(source).models.stores.map(({path}) => path);
  const own = '/home/ada/.local/share/hearsay/models';
  t.deepEqual(stores(settingsOfVariables({HEARSAY_STORES: ''}, '/somewhere')), [own]);
  t.deepEqual(stores(inFile({models: {stores: ['ollama=~/o', 'lmstudio=rel']}})), [
    own,
    '/home/ada/o',
    '/etc/hearsay/rel',
  ]);
  t.throws(() => stores(inFile({models: {stores: ['olama']}})), {message: /models\.stores .* huggingface, ollama/u});
});

test('a table for one model says how that one is loaded', t => {
  const toml = {
    models: {
      folders: ['/m'],
      'Qwen3-8B.Q4': {context: 4096, slots: 2, keep: true, extra_arguments: ['-ctk', 'q8_0']},
      other: {context: 512},
    },
    engine: {memory: '2GiB'},
  };
  const {engine, models} = config(inFile(toml));
  t.deepEqual(models.folders, ['/m']);
  t.is(engine.memoryBytes, 2 * 1024 ** 3);
  t.like(engine.models, {
    'Qwen3-8B.Q4': {context: 4096, slots: 2, keep: true, extraArguments: ['-ctk', 'q8_0']},
    other: {context: 512},
  });
});

const badTables: readonly (readonly [unknown, RegExp])[] = [
  [
    {contxt: 1},
    /^\[models\."m"\] in .*config\.toml: unknown key `contxt`; did you mean `context`\? It may have context, slots/u,
  ],
  [{preload: true}, /unknown key `preload`; it may have .*; to load models at the start: engine\.preload/u],
  [{context: 'many'}, /context must be a number of tokens/u],
  [{slots: 0}, /slots must be /u],
  [{keep: 'yes'}, /keep must be true or false/u],
];
for (const [value, message] of badTables) {
  test(`a table for one model with ${JSON.stringify(value)} is an error that names it`, t => {
    const fault = t.throws<Fault>(() => inFile({models: {m: value}}), {message});
    t.is(fault?.code, 'BAD_CONFIG');
  });
}
