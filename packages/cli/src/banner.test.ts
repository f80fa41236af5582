import test from 'ava';
import {toDigest, toNodeId} from '@hearsay/core';
import type {ModelReport, NodeReport, StatusReport} from '@hearsay/core';
import {banner} from './banner.ts';
import type {BannerFacts} from './banner.ts';

const id = toNodeId('12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp');

const status: StatusReport = {
  id,
  name: 'mac',
  version: '0.1.0',
  mesh: 'home',
  meshAddresses: [],
  gateway: 'http://127.0.0.1:4327',
  engine: 'llama-server 0.5.0 (installed by hearsay)',
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

const model = (name: string, changes: Partial<ModelReport> = {}): ModelReport => ({
  name,
  names: [name],
  digest: toDigest(`sha256:${'a'.repeat(64)}`),
  sizeBytes: 1,
  architecture: 'llama',
  quant: 'Q8_0',
  parameters: 1,
  contextMax: 1024,
  capabilities: ['chat', 'completion'],
  status: 'unloaded',
  nodes: [{id, name: 'mac', local: true}],
  conflict: false,
  demo: false,
  problem: undefined,
  hashed: undefined,
  ...changes,
});

const peer = (name: string): NodeReport => ({
  id,
  name,
  local: false,
  address: '',
  state: 'alive',
  note: undefined,
  path: 'direct',
  roundTripMs: 1,
  version: '0.1.0',
  memoryKind: 'ram',
  memoryTotalBytes: 1,
  memoryFreeBytes: 1,
  models: 0,
  loaded: [],
  busy: 0,
  slots: 0,
});

const openness = {mode: 'lan', openTo: ['192.168.1.0/24'], members: [], warnings: []} as const;

const text = (changes: Partial<BannerFacts> = {}): string =>
  banner({status, models: [model('qwen3:4b')], nodes: [], hasEngine: true, requireKey: false, openness, ...changes});

test('the banner says what runs where, who may come, and what to try', t => {
  t.is(
    text(),
    `hearsay 0.1.0: node mac (vnc6iDEp)
  gateway   http://127.0.0.1:4327
  mesh      home, open to this LAN: 192.168.1.0/24 (hearsay lock closes it); no peers so far
  engine    llama-server 0.5.0 (installed by hearsay)
  models    qwen3:4b
  try       curl -N http://127.0.0.1:4327/v1/chat/completions -H 'content-type: application/json' -d '{"model":"qwen3:4b","stream":true,"messages":[{"role":"user","content":"Hello!"}]}'
ready: http://127.0.0.1:4327
`,
  );
});

test('the banner calls the toy a toy and says how to get a real model', t => {
  const said = text({models: [model('hearsay-demo', {demo: true})]});
  t.regex(said, /hearsay-demo, a toy /u);
  t.regex(said, /\.gguf files into a folder .* --models DIR/u);
  t.regex(said, /"model":"hearsay-demo"/u);
});

test('without a model the banner has nothing to try, but says how to get one', t => {
  const said = text({models: []});
  t.notRegex(said, /curl/u);
  t.regex(said, /--models DIR/u);
  t.regex(said, /ready: \S+\n$/u);
});

test('a model that cannot be used is not offered, but counted', t => {
  const said = text({models: [model('half', {problem: 'shard 2 is missing'}), model('whole')]});
  t.regex(said, /models {4}whole\n/u);
  t.regex(said, /1 unusable; see: hearsay models/u);
  t.regex(said, /"model":"whole"/u);
});

test('a model that only completes is tried by a completion', t => {
  t.regex(text({models: [model('base', {capabilities: ['completion']})]}), /v1\/completions .*"prompt"/u);
});

test('a node without an engine has only models of others to try', t => {
  const elsewhere = model('far', {nodes: [{id, name: 'spark', local: false}]});
  t.notRegex(text({hasEngine: false}), /curl/u);
  t.regex(text({hasEngine: false, models: [model('qwen3:4b'), elsewhere]}), /"model":"far"/u);
});

test('peers are named, and so are only as many models as fit', t => {
  const said = text({
    nodes: [peer('spark'), peer('box')],
    models: Array.from({length: 9}, (_, index) => model(`m${index}`)),
  });
  t.regex(said, /; peers: spark, box\n/u);
  t.regex(said, /m0, m1, m2, m3, m4, m5 and 3 more\n/u);
});

test('a name with a quote does not break out of the shell command', t => {
  t.regex(text({models: [model(`a'; rm -rf ~ '`)]}), /"model":"a'\\''; rm -rf ~ '\\''"/u);
});

test('a closed mesh says so, and what somebody should look at is said before everything is ready', t => {
  const said = text({openness: {...openness, mode: 'members', openTo: [], warnings: ['the key is copied']}});
  t.regex(said, /mesh {6}home, closed, 0 members; no peers/u);
  t.regex(said, /note {6}the key is copied\n/u);
});

test('where everybody needs a key, the line to try has a place for it', t => {
  t.regex(text({requireKey: true}), /curl -N \S+ -H "authorization: Bearer \$HEARSAY_KEY" -H 'content-type/u);
  t.notRegex(text(), /authorization/u);
});
