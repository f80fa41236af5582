import test from 'ava';
import fc from 'fast-check';
import {beat, model, node} from '../../../test/support/builders.ts';
import {toNodeId} from './ids.ts';
import type {NodeId} from './ids.ts';
import {viewNodesMax} from './limits.ts';
import type {NodeRecord} from './record.ts';
import {applyInventory, applyRecord, emptyView, expireNodes, dropUnneeded} from './view.ts';
import type {View} from './view.ts';

const signedBy = (record: NodeRecord) => ({
  node: record.node,
  payload: new Uint8Array([record.boot, record.sequence]),
  signature: new Uint8Array(),
});

function hear(view: View, record: NodeRecord, {ageMs = 0, nowMs = 0} = {}): ReturnType<typeof applyRecord> {
  return applyRecord(view, {record, signed: signedBy(record), ageMs}, nowMs);
}

const leave = (letter: string, sequence: number, boot = 1): NodeRecord => ({
  kind: 'leave',
  node: node(letter),
  boot,
  sequence,
});

test('S101, R40: a newer record beats an older one and an older one changes nothing', t => {
  const first = hear(emptyView, beat('A', {sequence: 8}));
  t.is(first.change, 'joined');
  const late = hear(first.view, beat('A', {sequence: 7}));
  t.is(late.change, 'old');
  t.is(late.view, first.view);
  t.is(hear(first.view, beat('A', {sequence: 9})).change, 'updated');
});

test('a restart is newer than everything before it', t => {
  const {view} = hear(emptyView, beat('A', {boot: 1, sequence: 500}));
  t.is(hear(view, beat('A', {boot: 2, sequence: 1})).change, 'updated');
});

test('R36: a node that left or expired is not brought back by third parties', t => {
  const {view} = hear(emptyView, beat('A', {sequence: 3}));
  const gone = hear(view, leave('A', 4)).view;
  t.is(gone.nodes.size, 0);
  t.is(hear(gone, beat('A', {sequence: 3})).change, 'old');

  const {view: expired, expired: names} = expireNodes(view, 7001);
  t.deepEqual(names, [node('A')]);
  t.is(hear(expired, beat('A', {sequence: 3}), {nowMs: 7001}).change, 'old');
  t.is(hear(expired, beat('A', {sequence: 4}), {nowMs: 7001}).change, 'joined');
});

test('R42: a record expires by the time since it was made, counted on this clock and on those it passed through', t => {
  const {view} = hear(emptyView, beat('A', {ttlMs: 7000}), {ageMs: 5000, nowMs: 100_000});
  t.is(expireNodes(view, 102_000).expired.length, 0);
  t.is(expireNodes(view, 102_001).expired.length, 1);
  t.is(hear(emptyView, beat('A', {ttlMs: 7000}), {ageMs: 7001}).change, 'old');
});

test('an inventory stays with its node over later beats and is ignored for a node that went', t => {
  const fetched = {digest: 'x', inventory: {models: [model('m', 'a')]}};
  const {view} = hear(emptyView, beat('A'));
  const known = applyInventory(view, node('A'), fetched);
  t.is(hear(known, beat('A', {sequence: 2})).view.nodes.get(node('A'))?.inventory?.digest, 'x');
  t.is(applyInventory(emptyView, node('A'), fetched), emptyView);
});

const anyRecord = fc
  .record({
    letter: fc.constantFrom('A', 'B', 'C'),
    boot: fc.integer({min: 1, max: 3}),
    sequence: fc.integer({min: 1, max: 6}),
    leaves: fc.boolean(),
  })
  .map(({letter, boot, sequence, leaves}) => (leaves ? leave(letter, sequence, boot) : beat(letter, {boot, sequence})));

test('however many nodes have come and gone, a new one is met; only too many at once are not', t => {
  const ids = Array.from({length: viewNodesMax + 1}, (_, index) => toNodeId(`12D3Koo${digits(index)}`));
  const record = (id: NodeId, kind: 'beat' | 'leave'): NodeRecord =>
    kind === 'beat' ? {...beat('A'), node: id} : {kind, node: id, boot: 1, sequence: 2};
  const all = ids.slice(0, viewNodesMax).reduce((view, id) => hear(view, record(id, 'beat')).view, emptyView);
  const [first, second, last] = [ids[0], ids[1], ids.at(-1)];
  if (!first || !second || !last) return t.fail();
  t.is(hear(all, record(last, 'beat')).change, 'full');

  const fewer = [second, first].reduce((view, id) => hear(view, record(id, 'leave')).view, all);
  const {view, change} = hear(fewer, record(last, 'beat'));
  t.is(change, 'joined');
  t.is(hear(view, record(first, 'beat')).change, 'old', 'who left last is still known as gone');
});

test('a full view makes room for one that is here by forgetting one that nobody needs', t => {
  const ids = Array.from({length: viewNodesMax + 1}, (_, index) => toNodeId(`12D3Koo${digits(index)}`));
  const record = (id: NodeId): NodeRecord => ({...beat('A'), node: id});
  const full = ids.slice(0, viewNodesMax).reduce((view, id) => hear(view, record(id)).view, emptyView);
  const [first, second, last] = [ids[0], ids[1], ids.at(-1)];
  if (!first || !second || !last) return t.fail();
  const {view, change} = hear(
    dropUnneeded(full, id => id === first),
    record(last),
  );
  t.is(change, 'joined');
  t.true(view.nodes.has(first) && !view.nodes.has(second));
  t.is(
    dropUnneeded(full, () => true),
    full,
  );
});

/** A number in base58, as long as the end of an id. */
function digits(number: number): string {
  const alphabet = '123456789ABCDEFGHJ';
  return Array.from(number.toString(18).padStart(45, '0'), digit => alphabet[parseInt(digit, 18)]).join('');
}

test('S101: whatever the order of arrival, all nodes end with the same view', t => {
  const distinct = fc.uniqueArray(anyRecord, {selector: ({node: id, boot, sequence}) => `${id} ${boot} ${sequence}`});
  fc.assert(
    fc.property(distinct, fc.infiniteStream(fc.double({min: 0, max: 1, noNaN: true})), (records, chance) => {
      const weights = new Map(records.map(record => [record, chance.next().value ?? 0]));
      const shuffled = records.toSorted((a, b) => (weights.get(a) ?? 0) - (weights.get(b) ?? 0));
      const merge = (list: readonly NodeRecord[]): View =>
        list.reduce((view, record) => hear(view, record).view, emptyView);
      const twice = merge([...records, ...records]);
      const nodesOf = (view: View) =>
        [...view.nodes.values()].map(({beat: b}) => `${b.node} ${b.boot} ${b.sequence}`).toSorted();
      t.deepEqual(nodesOf(merge(shuffled)), nodesOf(merge(records)));
      t.deepEqual(nodesOf(twice), nodesOf(merge(records)));
    }),
  );
});

test('a sketch belongs to one run of a known node: the newer one wins, and it ends with that run', t => {
  const sketch = (sequence: number, boot = 1): NodeRecord => ({
    kind: 'sketch',
    node: node('A'),
    boot,
    sequence,
    prompts: new Map(),
  });
  const held = (view: View): number | undefined => view.nodes.get(node('A'))?.sketch?.sequence;
  t.is(hear(emptyView, sketch(1)).change, 'old');
  const {view} = hear(hear(emptyView, beat('A', {sequence: 50})).view, sketch(2));
  t.is(held(view), 2);
  t.is(hear(view, sketch(1)).change, 'old');
  t.is(hear(view, sketch(9, 2)).change, 'old');
  t.is(held(hear(view, beat('A', {sequence: 51})).view), 2);
  t.is(held(hear(view, beat('A', {boot: 2})).view), undefined);
});
