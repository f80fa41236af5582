import test from 'ava';
import {runChaos} from '../../scripts/load/run-chaos.ts';

/** Less than in `npm run chaos`, for as much trouble with fewer requests: the quiet between is what is dear. */
const pauseMs = 1000;

test.serial(
  'S79, S89, S90: every request ends with a name while daemons are killed, stopped and cut off; none is replayed',
  async t => {
    t.timeout(300_000);
    const report = await runChaos({requests: 150, pauseMs, seed: Date.now() % 1000, say: line => t.log(line)});
    t.log(`\n${report.outcomes.list()}\n${report.disturbances.list()}`);
    t.deepEqual(report.faults, []);
    t.is(report.outcomes.total, 150);
    t.true(report.disturbances.total > 0);
  },
);
