import fc from 'fast-check';
import test from 'ava';
import {countUse, makeRoom, planStart, worthOf} from './room.ts';
import type {Resident, UseCount} from './room.ts';

const resident = (key: string, worth: number, changes: Partial<Resident> = {}): Resident => ({
  key,
  worth,
  needBytes: 10,
  mayGo: true,
  isKept: false,
  ...changes,
});

test('the least worth goes first, and no more than needed', t => {
  const residents = [resident('a', 3), resident('b', 1), resident('c', 2)];
  t.deepEqual(makeRoom(10, 0, residents), ['b']);
  t.deepEqual(makeRoom(15, 0, residents), ['b', 'c']);
  t.deepEqual(makeRoom(10, 10, residents), []);
});

test('R93, R94: what works, loads, is lent or kept stays, however little it is worth', t => {
  const residents = [resident('busy', 0, {mayGo: false}), resident('idle', 99)];
  t.deepEqual(makeRoom(10, 0, residents), ['idle']);
  t.is(makeRoom(11, 0, residents), undefined);
});

test('nothing goes unless the wanted model then fits', t => {
  t.is(makeRoom(31, 0, [resident('a', 1), resident('b', 2), resident('c', 3)]), undefined);
  t.is(makeRoom(1, 0, []), undefined);
});

test('a small one that would go first stays when the larger one after it makes room alone', t => {
  t.deepEqual(makeRoom(10, 0, [resident('small', 1, {needBytes: 2}), resident('large', 2)]), ['large']);
});

const anyResident = fc.record({
  key: fc.string(),
  needBytes: fc.nat(100),
  mayGo: fc.boolean(),
  isKept: fc.constant(false),
  worth: fc.nat(50),
});

test('whatever is loaded: those that go may go, make enough room, and none of them in vain', t => {
  const residents = fc.uniqueArray(anyResident, {selector: ({key}) => key, maxLength: 8});
  fc.assert(
    fc.property(fc.nat(300), fc.nat(100), residents, (wanted, free, all) => {
      const going = makeRoom(wanted, free, all);
      const bytes = (keys: readonly string[]): number =>
        all.filter(({key}) => keys.includes(key)).reduce((sum, {needBytes}) => sum + needBytes, 0);
      const able = all.filter(({mayGo}) => mayGo).map(({key}) => key);
      if (going === undefined) return free + bytes(able) < wanted;
      const isNeeded = going.every(key => free + bytes(going.filter(other => other !== key)) < wanted);
      return going.every(key => able.includes(key)) && free + bytes(going) >= wanted && isNeeded;
    }),
  );
  t.pass();
});

const minute = 60_000;
const used = (...timesMs: readonly number[]): UseCount | undefined =>
  timesMs.reduce<UseCount | undefined>((usage, ms) => countUse(usage, ms), undefined);

test('worth grows with the requests of late and with the time to load', t => {
  const [often, once] = [used(0, 1, 2), used(2)];
  t.true(worthOf(often, 5000, 10) > worthOf(once, 5000, 10));
  t.true(worthOf(once, 60_000, 10) > worthOf(often, 5000, 10));
  t.true(worthOf(used(10), 5000, 20) > worthOf(used(5), 5000, 20), 'of equals the later used');
});

test('what was busy long ago is worth less than what is used now', t => {
  const morning = used(...Array.from({length: 50}, (_, index) => index));
  t.true(worthOf(morning, 5000, 120 * minute) < worthOf(used(119 * minute), 5000, 120 * minute));
});

test('quick loads are alike: chance does not decide between toys', t => {
  t.is(worthOf(used(0), 20, 0), worthOf(used(0), 900, 0));
  t.is(worthOf(undefined, 5000, 0), 0);
});

const wish = {slots: undefined, slotsMax: 4, context: undefined, contextMax: undefined};

/** A model that needs 1000 and one more for each 1024 tokens: 1032 at its full size of four slots. */
function plan(freeBytes: number, residents: readonly Resident[] = []): string {
  const needBytes = ({slots, context}: {slots: number; context: number}) => 1000 + (slots * context) / 1024;
  const made = planStart({wish, contextTrained: 131_072, needBytes, freeBytes, residents});
  return made.kind === 'start' ? `${made.size.slots} × ${made.size.context} -${made.evict.join()}` : made.kind;
}

const idle = resident('idle', 1, {needBytes: 500});
const working = resident('working', 1, {needBytes: 500, mayGo: false});
const kept = resident('kept', 1, {needBytes: 500, mayGo: false, isKept: true});

const plans: readonly (readonly [string, number, readonly Resident[], string])[] = [
  ['room for all of it: nothing goes', 1032, [idle], '4 × 8192 -'],
  ['a little less: half the slots, and nothing goes', 1017, [idle], '2 × 8704 -'],
  ['room for a single slot only: what is idle goes', 1010, [idle], '4 × 8192 -idle'],
  ['what works is not touched: a single slot', 1010, [working], '1 × 10240 -'],
  ['room for a slot of 4k: it waits for what works', 1004, [working], 'wait'],
  ['room for a slot of 4k, and no more will come', 1004, [], '1 × 4096 -'],
  ['no room beside what works', 900, [working], 'wait'],
  ['no room even alone', 900, [], 'never'],
  ['what is idle would not make enough room', 400, [idle, working], 'wait'],
  ['more promised than there is', -100, [idle], 'never'],
  ['no room beside what is kept, for which nobody can wait', 900, [kept], 'never'],
  ['room for a slot of 4k beside what is kept', 1004, [kept], '1 × 4096 -'],
  ['no room beside what is kept until what works has ended', 900, [kept, working], 'wait'],
];

for (const [title, freeBytes, residents, expected] of plans) {
  test(`start of a model: ${title}`, t => t.is(plan(freeBytes, residents), expected));
}
