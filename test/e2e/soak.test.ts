import test from 'ava';
import {runSoak} from '../../scripts/load/run-soak.ts';

/** As many disturbances as in twice the time at the pace of `npm run soak`: the load between them is what is dear. */
const pauseMs = [250, 1000] as const;

/** On a machine that is too slow for them it takes longer. */
const atLeast = {requests: 26, disturbances: 6};

/** Each run has another seed; `npm run soak` takes as many minutes as one has. */
test.serial(
  'after a quarter of a minute of random load and frequent trouble on three nodes nothing is left over',
  async t => {
    t.timeout(300_000);
    const seed = Date.now() % 1000;
    const report = await runSoak({minutes: 0.25, pauseMs, atLeast, seed, say: line => t.log(line)});
    t.log(`seed ${seed}`);
    t.log(`\n${report.outcomes.list()}\n${report.disturbances.list()}`);
    t.deepEqual(report.faults, []);
    t.true(report.outcomes.total >= atLeast.requests);
    t.true(report.disturbances.total >= atLeast.disturbances);
  },
);
