import test from 'ava';
import {runChaos} from '../../scripts/load/run-chaos.ts';

/** Less quiet between troubles than in `npm run chaos`, and fewer requests: both cost time and show nothing. */
const pace = {requests: 60, disturbancesMin: 4, pauseMs: 1000, restMs: 100};

test.serial(
  'S79, S89, S90: every request ends with a name while daemons are killed, stopped and cut off; none is replayed',
  async t => {
    t.timeout(300_000);
    const seed = Date.now() % 1000;
    const report = await runChaos({...pace, seed, say: line => t.log(line)});
    t.log(`seed ${seed}`);
    t.log(`\n${report.outcomes.list()}\n${report.disturbances.list()}`);
    t.deepEqual(report.faults, []);
    t.true(report.outcomes.total >= 60);
    t.true(report.disturbances.total >= 4);
  },
);
