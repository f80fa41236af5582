import test from 'ava';
import {toDigest, toNodeId} from '@hearsay/core';
import type {EngineReport, ModelReport, NodeReport} from '@hearsay/core';
import {engineNotes, engineTable, modelNotes, modelTable, nodeNotes, nodeTable, printable} from './tables.ts';

const here = toNodeId('12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp');
const there = toNodeId('12D3KooWHHzSeKaY8xuZVzkLbKFfvNgPPeKhFBGrMbNzbm5akpqu');
const digest = toDigest(`sha256:${'0123456789abcdef'.repeat(4)}`);

const engine = (changes: Partial<EngineReport> = {}): EngineReport => ({
  name: 'docker.io/ai/qwen3.5:0.8b',
  digest,
  sizeBytes: 737_500_000,
  processor: 'llama-server',
  context: 262_144,
  state: 'ready',
  startedSecondsAgo: 1,
  node: 'local',
  nodeId: here,
  nodeName: 'mac',
  nodeState: 'alive',
  untilSeconds: 299,
  slots: 4,
  busy: 0,
  queued: 0,
  failure: undefined,
  ...changes,
});

const model = (changes: Partial<ModelReport> = {}): ModelReport => ({
  name: 'qwen3:4b',
  names: ['qwen3:4b'],
  digest,
  sizeBytes: 4_100_000_000,
  architecture: 'qwen3',
  quant: 'Q4_K_M',
  parameters: 4e9,
  contextMax: 32_768,
  capabilities: ['chat'],
  status: 'unloaded',
  nodes: [{id: here, name: 'mac', local: true}],
  conflict: false,
  demo: false,
  problem: undefined,
  hashed: undefined,
  ...changes,
});

const node = (changes: Partial<NodeReport> = {}): NodeReport => ({
  id: here,
  name: 'mac',
  local: true,
  address: '192.168.1.5:4328',
  state: 'alive',
  note: undefined,
  path: 'self',
  roundTripMs: undefined,
  version: '0.1.0',
  memoryKind: 'device',
  memoryTotalBytes: 38e9,
  memoryFreeBytes: 30.5e9,
  models: 3,
  loaded: [],
  busy: 0,
  slots: 0,
  ...changes,
});

test('what cannot be read of a file is a dash, and no zero', t => {
  const row = modelTable([model({quant: '', contextMax: 0, problem: 'cut'})]).split('\n')[1] ?? '';
  t.deepEqual(row.split(/ {2,}/u).slice(3), ['-', '-', 'unusable', 'local']);
});

test('S45, S46, S47, S48, S49, S50, S51, S52, S53: ps shows the eight columns in their order, full names, short ids and relative times', t => {
  const remote = engine({node: '192.168.1.9:4328', startedSecondsAgo: 125, untilSeconds: undefined});
  t.is(
    engineTable([engine(), remote]),
    `NAME                         ID              SIZE        PROCESSOR       CONTEXT    STARTED          NODE                UNTIL
docker.io/ai/qwen3.5:0.8b    0123456789ab    737.5 MB    llama-server    262144     just now         local               4 minutes from now
docker.io/ai/qwen3.5:0.8b    0123456789ab    737.5 MB    llama-server    262144     2 minutes ago    192.168.1.9:4328    Forever
`,
  );
});

test('S52: ps has no NODE column while everything is loaded here', t => {
  t.notRegex(engineTable([engine()]), /NODE|local/u);
  t.is(
    engineTable([]),
    'NAME    ID    SIZE    PROCESSOR    CONTEXT    STARTED    UNTIL\n',
    'also when nothing is loaded at all',
  );
});

const lastCells = (text: string): readonly string[] => (text.split('\n')[1] ?? '').split(/ {4,}/u).slice(-2);

test('an engine that loads shows that instead of when it started', t => {
  const loading = engine({state: 'loading', startedSecondsAgo: undefined, untilSeconds: undefined});
  t.deepEqual(lastCells(engineTable([loading])), ['loading', '-']);
});

test('a busy engine is in use, not kept for ever', t => {
  t.deepEqual(lastCells(engineTable([engine({busy: 1, untilSeconds: undefined})])), ['just now', 'in use']);
});

test('why an engine is broken stands below the table, over several lines', t => {
  t.is(engineNotes([engine(), engine({name: 'bad', failure: 'exit 1\nno memory'})]), 'bad: exit 1\n    no memory\n');
});

test('models shows where each is stored and what hinders it', t => {
  const nodes = [
    {id: here, name: 'mac', local: true},
    {id: there, name: 'spark', local: false},
  ];
  const rows = [
    model({nodes}),
    model({name: 'hashing', digest: toDigest('unproven:file-1'), hashed: 0.429}),
    model({name: 'twin', conflict: true, status: 'loaded'}),
    model({name: 'half', problem: 'shard 2 of 2 is missing'}),
    model({name: 'toy', demo: true, quant: ''}),
  ];
  t.is(
    modelTable(rows),
    `NAME        ID              SIZE      QUANT     CONTEXT    STATUS              NODES
qwen3:4b    0123456789ab    4.1 GB    Q4_K_M    32768      stored              local, spark
hashing     -               4.1 GB    Q4_K_M    32768      hashing 42%         local
twin        0123456789ab    4.1 GB    Q4_K_M    32768      loaded, conflict    local
half        0123456789ab    4.1 GB    Q4_K_M    32768      unusable            local
toy         0123456789ab    4.1 GB    -         32768      stored, demo        local
`,
  );
  t.is(
    modelNotes(rows),
    'twin: there are different models of this name; the name alone means this one here; always ask for it as twin@sha256:0123456789ab\n' +
      'half: shard 2 of 2 is missing\n',
  );
});

test('nodes shows this node first, and why a stranger was not admitted', t => {
  const peer = node({
    id: there,
    name: 'aaa',
    local: false,
    path: 'direct',
    roundTripMs: 1.234,
    memoryTotalBytes: 0,
    loaded: ['qwen3:4b', 'toy'],
  });
  const stranger = node({id: there, name: '', local: false, state: 'seen', path: 'direct', note: 'another mesh'});
  t.is(
    nodeTable([peer, stranger, node()]),
    `NAME    ID          ADDRESS             STATE    PATH      RTT       MEMORY                     LOADED
mac     vnc6iDEp    192.168.1.5:4328    alive    self      -         30.5 GB of 38.0 GB free    -
aaa     bm5akpqu    192.168.1.5:4328    alive    direct    1.2 ms    -                          qwen3:4b, toy
-       bm5akpqu    192.168.1.5:4328    seen     direct    -         30.5 GB of 38.0 GB free    -
`,
  );
  t.is(nodeNotes([stranger]), 'bm5akpqu: another mesh\n');
});

test('text of other machines cannot steer the terminal', t => {
  t.is(printable('\u001B]0;owned\u0007 a\nb \u202Ec'), '?]0;owned? a?b ?c');
  t.false(nodeTable([node({name: '\u001B[2J'})]).includes('\u001B'));
});

test('R69: of two models with one name, each tells how to ask for it, and one that the name alone means it', t => {
  const [a, b] = [toDigest(`sha256:${'a'.repeat(64)}`), toDigest(`sha256:${'b'.repeat(64)}`)];
  const nodes = [{id: there, name: 'spark', local: false}];
  const text = modelNotes([
    model({name: 'twin', conflict: true, digest: a}),
    model({name: 'twin', conflict: true, digest: b, nodes}),
    model({name: 'other'}),
  ]);
  const lines = text.trimEnd().split('\n');
  t.is(lines.length, 2);
  t.regex(lines[0] ?? '', /^twin: .* alone means this one here; .* as twin@sha256:aaaaaaaaaaaa$/u);
  t.regex(lines[1] ?? '', /^twin: .* alone means the other one here; .* as twin@sha256:bbbbbbbbbbbb$/u);
});
