import test from 'ava';
import {runSoak} from '../../scripts/load/run-soak.ts';

/** As many disturbances as in twice the time at the pace of `npm run soak`: the load between them is what is dear. */
const pauseMs = [250, 1000] as const;

/** Each run has another seed; `npm run soak` takes as many minutes as one has. */
test.serial(
  'after a quarter of a minute of random load and frequent trouble on three nodes nothing is left over',
  async t => {
    t.timeout(300_000);
    const report = await runSoak({minutes: 0.25, pauseMs, seed: Date.now() % 1000, say: line => t.log(line)});
    t.log(`\n${report.outcomes.list()}\n${report.disturbances.list()}`);
    t.deepEqual(report.faults, []);
    t.true(report.outcomes.total > 25);
    t.true(report.disturbances.total > 5);
  },
);
