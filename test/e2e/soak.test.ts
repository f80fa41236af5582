import test from 'ava';
import {runSoak} from '../../scripts/load/run-soak.ts';

/** Each run has another seed; `npm run soak` takes as many minutes as one has. */
test.serial('after half a minute of random load and trouble on three nodes nothing is left over', async t => {
  t.timeout(300_000);
  const report = await runSoak({minutes: 0.5, seed: Date.now() % 1000, say: line => t.log(line)});
  t.log(`\n${report.outcomes.list()}\n${report.disturbances.list()}`);
  t.deepEqual(report.faults, []);
  t.true(report.outcomes.total > 25);
});
