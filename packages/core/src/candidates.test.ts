import test from 'ava';
import {beat, digest, engineBeat, model, node} from '../../../test/support/builders.ts';
import {candidatesFor} from './candidates.ts';
import type {Candidate, Question, Reach, SelfFacts} from './candidates.ts';
import {toDigest} from './ids.ts';
import {automatic} from './policy.ts';
import {emptyView} from './view.ts';
import type {KnownNode, View} from './view.ts';

const question: Question = {
  digests: [digest('a')],
  needs: ['chat'],
  policy: automatic,
  tried: new Set(),
  busy: new Set(),
  hits: new Map(),
  nowMs: 1000,
};
const self: SelfFacts = {beat: beat('S'), models: []};
const reachable: Reach = {
  roundTripMs: 2,
  relayed: false,
  quarantinedUntilMs: -Infinity,
  failures: 0,
  ownOffers: 0,
};

interface Peer {
  readonly beat?: Parameters<typeof beat>[1];
  readonly models?: readonly ReturnType<typeof model>[];
  readonly madeAtMs?: number;
}

function viewOf(letter: string, peer: Peer = {}): View {
  const known: KnownNode = {
    beat: beat(letter, peer.beat),
    signed: {node: node(letter), payload: new Uint8Array(), signature: new Uint8Array()},
    madeAtMs: peer.madeAtMs ?? 0,
    inventory: {digest: '', models: peer.models ?? [model('m', 'a')]},
  };
  return {...emptyView, nodes: new Map([[node(letter), known]])};
}

/** How the peer stands for the question. */
function standing(changes: Partial<Question>, peer: Peer = {}, reach: Reach | undefined = reachable): Candidate {
  const reaches = new Map(reach ? [[node('A'), reach]] : []);
  const found = candidatesFor({...question, ...changes}, self, viewOf('A', peer), reaches).find(({self: own}) => !own);
  if (!found) throw new Error('the peer is missing from the list');
  return found;
}

test('S63, S67, S68, S70: each filter alone excludes a node, and its name is the reason', t => {
  const pin = {...automatic, placement: {kind: 'pin', nodes: ['other']}} as const;
  t.is(standing({}).exclusion, undefined);
  t.is(standing({policy: pin}).exclusion, 'policy');
  t.is(candidatesFor(question, self, viewOf('A'), new Map())[1]?.exclusion, 'not connected');
  t.is(standing({}, {}, {...reachable, quarantinedUntilMs: 2000}).exclusion, 'quarantined');
  t.is(standing({tried: new Set([node('A')])}).exclusion, 'tried');
  t.is(standing({busy: new Set([node('A')])}).exclusion, 'busy');
  t.is(standing({}, {beat: {flags: {draining: true, paused: false}}}).exclusion, 'draining');
  const low = {flags: {draining: false, paused: false, batteryShare: 0.1}};
  t.is(standing({}, {beat: low}).exclusion, 'battery');
  t.is(standing({}, {models: [model('m', 'b')]}).exclusion, 'artifact');
  t.is(standing({needs: ['chat', 'vision']}).exclusion, 'capability');
  t.is(standing({}, {beat: {memory: {kind: 'ram', totalBytes: 1e9, freeBytes: 1e9}}}).exclusion, 'too large');
});

test('a node with a low battery still runs what enters at it', t => {
  const flags = {draining: false, paused: false, batteryShare: 0.1};
  const own: SelfFacts = {beat: beat('S', {flags}), models: [model('m', 'a')]};
  const [here] = candidatesFor(question, own, emptyView, new Map());
  t.is(here?.exclusion, undefined);
  t.is(here?.batteryShare, 0.1);
});

test('S71: a beat past its life excludes the node, whatever its reach', t => {
  t.is(standing({nowMs: 7000}).exclusion, undefined);
  t.is(standing({nowMs: 7001}).exclusion, 'stale');
});

test('S24: a node on which the file does not fit is out, unless it has loaded it already', t => {
  const tiny = {memory: {kind: 'ram', totalBytes: 1e9, freeBytes: 1e9}} as const;
  t.is(standing({}, {beat: tiny}).exclusion, 'too large');
  t.is(standing({}, {beat: {...tiny, engines: [engineBeat('a')]}}).exclusion, undefined);
});

test('S28: unknown memory is assumed to fit anything', t => {
  t.is(standing({}, {beat: {memory: {kind: 'ram', totalBytes: 0, freeBytes: 0}}}).exclusion, undefined);
});

test('S27: room is capacity less the weights of what is loaded, and never negative', t => {
  const loaded = [engineBeat('a', {sizeBytes: 5e9}), engineBeat('b', {sizeBytes: 4e9})];
  const memory = (totalBytes: number) => ({kind: 'ram', totalBytes, freeBytes: 0}) as const;
  t.is(standing({}, {beat: {engines: loaded, memory: memory(16e9)}}).roomBytes, 7e9);
  t.is(standing({}, {beat: {engines: loaded, memory: memory(8e9)}}).roomBytes, 0);
});

test('S91, S92, S93: pin and prefer find a node by name, by id, and by the end of its id', t => {
  for (const written of ['a', 'A', node('A'), node('A').slice(-8)]) {
    const pin = {...automatic, placement: {kind: 'pin', nodes: [written]}} as const;
    const prefer = {...automatic, placement: {kind: 'prefer', nodes: [written]}} as const;
    t.is(standing({policy: pin}).exclusion, undefined, written);
    t.true(standing({policy: prefer}).preferred, written);
  }
});

test('a model that is still unproven serves only what enters at its own node', t => {
  const unproven = toDigest('unproven:1234');
  const own: SelfFacts = {beat: beat('S'), models: [model('m', 'a', {digest: unproven})]};
  const peer = viewOf('A', {models: [model('m', 'a', {digest: unproven})]});
  const [here, there] = candidatesFor({...question, digests: [unproven]}, own, peer, new Map([[node('A'), reachable]]));
  t.is(here?.exclusion, undefined);
  t.is(there?.exclusion, 'artifact');
});

test('R25: the context of a node that has not loaded the model is the one it would give it', t => {
  const known = viewOf('A').nodes.get(node('A'));
  if (!known) return t.fail();
  const contextOf = (contextMax: number): number | undefined => {
    const inventory = {digest: '', models: [model('m', 'a', {contextMax: 8192})], contextMax};
    const view = {...emptyView, nodes: new Map([[node('A'), {...known, inventory}]])};
    return candidatesFor(question, self, view, new Map([[node('A'), reachable]]))[1]?.contextTokens;
  };
  t.is(contextOf(4096), 4096);
  t.is(contextOf(32_768), 8192);
  t.is(standing({}, {beat: {engines: [engineBeat('a', {context: 2048})]}}).contextTokens, 2048);
});

test('what a node has not measured is guessed from its other models, else from its hardware', t => {
  const found = {prefillTps: 100, decodeTps: 10, loadMs: 2000, holdMs: 1, outputTokens: 1, bytesPerToken: 4};
  const double = model('m', 'a', {sizeBytes: 2e9, parameters: 2e9});
  const other = model('n', 'b', {sizeBytes: 1e9, parameters: 1e9, learned: found});
  t.deepEqual(standing({}, {models: [double, other]}).likely, {prefillTps: 50, decodeTps: 5, loadMs: 4000});
  t.is(standing({}, {models: [double]}).likely, undefined);
  const known = viewOf('A').nodes.get(node('A'));
  if (!known) return t.fail();
  const hardware = {memoryBytesPerSecond: 80e9, operationsPerSecond: 4e12, diskBytesPerSecond: 1e9};
  const view = {
    ...emptyView,
    nodes: new Map([[node('A'), {...known, inventory: {digest: '', models: [double], hardware}}]]),
  };
  const [, guessed] = candidatesFor(question, self, view, new Map([[node('A'), reachable]]));
  t.deepEqual(guessed?.guess, {prefillTps: 1000, decodeTps: 30, loadMs: 2800});
});
