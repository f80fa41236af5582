import test from 'ava';
import {simulate} from './world.ts';

const groups = 5;
const seedsEach = 10;

for (let group = 0; group < groups; group += 1) {
  const first = group * seedsEach + 1;
  const last = first + seedsEach - 1;
  test.serial(`laws 1 to 4, 9 and 10 hold in worlds of cuts, kills and crashes: seeds ${first} to ${last}`, async t => {
    t.timeout(300_000);
    const outcomes = new Map<string, number>();
    for (let seed = first; seed <= last; seed += 1) {
      const report = await simulate({seed, seconds: 12});
      t.deepEqual(report.broken, [], `npm run sim -- --seed ${seed}`);
      for (const [outcome, count] of report.outcomes) outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + count);
    }
    t.log([...outcomes].map(([outcome, count]) => `${count} ${outcome}`).join(', '));
    t.true((outcomes.get('finished') ?? 0) > 100, 'requests really run');
    t.true((outcomes.get('INTERRUPTED') ?? 0) > 0, 'faults really hit them');
  });
}

test.serial('a world is the same again from the same seed', async t => {
  const [first, second] = [await simulate({seed: 7, seconds: 12}), await simulate({seed: 7, seconds: 12})];
  t.deepEqual(first.events, second.events);
});
