import test from 'ava';
import {toDigest} from '@hearsay/core';
import type {ModelReport, NodeReport} from '@hearsay/core';
import {node} from '../../../test/support/builders.ts';
import {checkLines} from './doctor.ts';
import {judgeHealth, worstOf} from './judge-health.ts';
import type {DaemonFacts, HealthFacts} from './judge-health.ts';

const gib = 1024 ** 3;

/** A machine with nothing wrong, and no daemon. */
function healthy(changes: Partial<HealthFacts> = {}): HealthFacts {
  return {
    daemon: daemon({}),
    engine: {version: 'b1', command: '/bin/llama-server'},
    memory: {freeBytes: 8 * gib, totalBytes: 16 * gib},
    ports: {mesh: port(4328), gateway: port(4327)},
    multicast: [{interface: 'eth0', problem: undefined}],
    networks: [network('eth0', {})],
    folders: [{path: '/data', kind: 'data', state: 'readable', reason: undefined}],
    orphans: [],
    clock: {wallMs: Date.UTC(2026, 5, 1), lastStartMs: Date.UTC(2026, 4, 1)},
    ...changes,
  };
}

function port(number: number) {
  return {port: number, state: 'ours', owner: undefined, used: number} as const;
}

function network(name: string, changes: {kind?: 'lan' | 'overlay' | 'virtual'; trusted?: boolean}) {
  const common = {subnets: ['10.1.0.0/16'], gateway: undefined, present: true};
  return {interface: name, kind: 'lan', trusted: true, ...common, ...changes} as const;
}

function daemon({
  nodes = [],
  models = [],
  warnings = [],
}: {
  nodes?: readonly NodeReport[];
  models?: readonly ModelReport[];
  warnings?: readonly string[];
}): DaemonFacts {
  const status = {
    id: node('A'),
    name: 'spark',
    version: '1',
    mesh: 'home',
    meshAddresses: [],
    gateway: 'http://127.0.0.1:4327',
    engine: '',
    processId: 1,
    uptimeSeconds: 1,
    peers: 0,
    models: 0,
    loaded: 0,
    inFlight: 0,
    state: 'serving',
    policies: 0,
    dataFolder: '/data',
  };
  return {status, nodes, models, mesh: {mode: 'lan', warnings}};
}

function peer(name: string, changes: Partial<NodeReport> = {}): NodeReport {
  return {
    id: node('B'),
    name,
    local: false,
    address: '10.1.0.9:4328',
    state: 'alive',
    note: undefined,
    path: 'direct',
    relayedBy: undefined,
    roundTripMs: 1,
    version: '1',
    memoryKind: 'ram',
    memoryTotalBytes: 0,
    memoryFreeBytes: 0,
    models: 0,
    loaded: [],
    busy: 0,
    slots: 0,
    ...changes,
  };
}

/** What is not ok, as a person reads it. */
function complaints(changes: Partial<HealthFacts>): readonly string[] {
  const checks = judgeHealth(healthy(changes)).filter(({grade}) => grade !== 'ok');
  return checks.map(({grade, subject, finding, remedy}) => `${grade} ${subject}: ${finding} -> ${remedy ?? 'nothing'}`);
}

test('a machine in order has no complaint, and a line for each thing that was looked at', t => {
  const checks = judgeHealth(healthy());
  t.is(worstOf(checks), 'ok');
  t.deepEqual(complaints({}), []);
  const subjects = new Set(checks.map(({subject}) => subject));
  t.is(
    [...subjects].join(', '),
    'daemon, mesh port, gateway port, network, multicast, peers, names, engine, memory, folders, orphans, clock',
  );
});

test('no daemon is a warning, and one that runs and does not answer a problem', t => {
  const [none] = judgeHealth(healthy({daemon: {missing: 'cannot reach it', isStarted: false}}));
  const [deaf] = judgeHealth(healthy({daemon: {missing: 'no answer within 10 s', isStarted: true}}));
  t.is(none?.grade, 'warning');
  t.is(none?.remedy, 'hearsay serve');
  t.is(deaf?.grade, 'problem');
});

test('a taken port is told with who has it and which one is used instead', t => {
  const taken = {port: 4328, state: 'taken', owner: 'python3 (process 7)', used: 4329} as const;
  const [line] = complaints({ports: {mesh: taken, gateway: port(4327)}});
  t.regex(line ?? '', /^warning mesh port: 4328 is taken by python3 \(process 7\); this node uses 4329 -> /u);
});

test('a LAN that is not trusted is a warning with the command that trusts it; containers and VPNs are not', t => {
  const networks = [
    network('eth0', {trusted: false}),
    network('tailscale0', {kind: 'overlay', trusted: false}),
    network('docker0', {kind: 'virtual', trusted: false}),
  ];
  const lines = complaints({networks});
  t.is(lines.length, 1);
  t.regex(lines[0] ?? '', /eth0 .* not trusted.*hearsay network trust eth0$/u);
});

test('in a closed mesh no network needs to be trusted, as on a relay that has only a public address', t => {
  const closed = {...daemon({}), mesh: {mode: 'members', warnings: []}} as const;
  for (const networks of [[], [network('eth0', {trusted: false})]])
    t.deepEqual(complaints({daemon: closed, networks}), []);
  t.is(complaints({networks: []}).length, 1);
});

test('R54: multicast that does not work is told for each interface, with the way around it', t => {
  const multicast = [
    {interface: 'eth0', problem: undefined},
    {interface: 'wlan0', problem: 'ENETUNREACH'},
  ];
  const lines = complaints({multicast});
  t.is(lines.length, 1);
  t.regex(lines[0] ?? '', /wlan0: ENETUNREACH.*--peer/u);
});

test('a refused peer is told with the reason that it was given', t => {
  const refused = peer('12D3', {state: 'seen', note: 'belongs to mesh "lab"; set mesh.name'});
  const lines = complaints({daemon: daemon({nodes: [peer('a'), refused]})});
  t.is(lines.length, 1);
  t.regex(lines[0] ?? '', /^warning peers: 12D3 at 10\.1\.0\.9:4328 is seen: belongs to mesh "lab"/u);
});

test('two nodes of one name, a model name with two digests, and a copied key are each told', t => {
  const model = {name: 'llama', conflict: true};
  const lines = complaints({
    daemon: daemon({
      nodes: [peer('Mac', {local: true}), peer('mac')],
      models: [model, model].map(each => ({...modelReport, ...each})),
      warnings: ['the machine at 10.1.0.4 uses the same key as this one'],
    }),
  });
  t.is(lines.length, 3);
  t.regex(lines.join('\n'), /2 nodes are called Mac/u);
  t.regex(lines.join('\n'), /llama is the name of different files/u);
  t.regex(lines.join('\n'), /^problem names: the machine at 10\.1\.0\.4 uses the same key/mu);
});

test('R60: a node that announces itself and does not answer is told with the port to open', t => {
  const warnings = ['a node of this mesh announces itself at 10.1.0.4:4328, but does not answer there'];
  const [line = '', ...more] = complaints({daemon: daemon({warnings})});
  t.regex(line, /^warning firewall: .*10\.1\.0\.4:4328.*open that port/u);
  t.deepEqual(more, []);
});

test('a pass that ends soon is told', t => {
  const warnings = ['the pass of this node ends in 30 h and no keeper has renewed it'];
  t.regex(complaints({daemon: daemon({warnings})}).join(), /^warning membership: the pass of this node ends in 30 h/u);
});

test('an engine that does not run is a problem', t => {
  const lines = complaints({engine: {missing: '/x --version failed'}});
  t.deepEqual(lines, ['problem engine: /x --version failed -> hearsay engine install, or set engine.path']);
});

test('little memory is a warning and none is a problem', t => {
  const grade = (freeBytes: number): string | undefined =>
    complaints({memory: {freeBytes, totalBytes: 8 * gib}})[0]?.split(' ')[0];
  t.is(grade(4 * gib), undefined);
  t.is(grade(gib), 'warning');
  t.is(grade(gib / 8), 'problem');
});

test('a folder that somebody named must be there; the stores of other programs need not', t => {
  const missing = {path: '/m', state: 'missing', reason: 'ENOENT'} as const;
  t.deepEqual(complaints({folders: [{...missing, kind: 'other'}]}), []);
  t.regex(complaints({folders: [{...missing, kind: 'wanted'}]}).join(), /^problem folders: \/m does not exist/u);
  const broken = {path: '/d', kind: 'data', state: 'broken', reason: 'EACCES'} as const;
  t.regex(complaints({folders: [broken]}).join(), /^problem folders: \/d cannot be used \(EACCES\)/u);
});

test('R81: engines that outlived their daemon are a problem, with their process ids', t => {
  t.regex(complaints({orphans: [41, 42]}).join(), /process 41, process 42.*kill 41 42$/u);
});

test('a clock that was never set, or set back since the last start, is told', t => {
  const lastStartMs = Date.UTC(2026, 4, 1);
  t.regex(complaints({clock: {wallMs: 0, lastStartMs: 0}}).join(), /^problem clock: says 1970/u);
  t.regex(complaints({clock: {wallMs: lastStartMs - 3_600_000, lastStartMs}}).join(), /^warning clock/u);
  t.deepEqual(complaints({clock: {wallMs: lastStartMs - 1000, lastStartMs}}), []);
});

test('the worst check counts', t => {
  const check = {subject: 's', finding: 'f', remedy: undefined};
  t.is(
    worstOf([
      {...check, grade: 'ok'},
      {...check, grade: 'warning'},
    ]),
    'warning',
  );
  t.is(
    worstOf([
      {...check, grade: 'problem'},
      {...check, grade: 'warning'},
    ]),
    'problem',
  );
});

test('each check is one line, whatever a peer calls itself', t => {
  const lines = checkLines(judgeHealth(healthy({daemon: daemon({nodes: [peer('a\nok  b', {state: 'seen'})]})})));
  t.true(lines.split('\n').every(line => line === '' || /^(?:ok|warning|problem) {2,}/u.test(line)));
  t.notRegex(lines, /^ok {2}b/mu);
});

const modelReport: ModelReport = {
  name: '',
  names: [],
  digest: toDigest(`sha256:${'ab'.repeat(32)}`),
  sizeBytes: 1,
  architecture: 'llama',
  quant: 'F16',
  parameters: 1,
  contextMax: 1,
  capabilities: [],
  status: 'unloaded',
  nodes: [],
  conflict: false,
  demo: false,
  problem: undefined,
  hashed: undefined,
};
