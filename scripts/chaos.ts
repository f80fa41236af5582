import {parseArgs} from 'node:util';
import {runChaos} from './load/run-chaos.ts';
import {prepareTests} from './prepare-tests.ts';

/** `npm run chaos -- [--requests N] [--seed N]`: five daemons under load, of which one is always in trouble. */

const {values} = parseArgs({
  options: {requests: {type: 'string', default: '1000'}, seed: {type: 'string', default: '1'}},
});
Object.assign(process.env, await prepareTests());
const {requests, seed} = values;
console.log(`${requests} requests on five daemons, seed ${seed}`);
const report = await runChaos({requests: Number(requests), seed: Number(seed), say: line => console.log(line)});
console.log(
  `\nhow ${report.outcomes.total} requests ended, in ${report.seconds.toFixed(0)} s\n${report.outcomes.list()}`,
);
console.log(`\n${report.moved} were given to another node before output, and answered whole`);
console.log(`\nwhat disturbed them\n${report.disturbances.list()}`);
console.log(report.faults.length === 0 ? '\nall is well' : `\nWRONG:\n${report.faults.join('\n')}`);
process.exitCode = report.faults.length === 0 ? 0 : 1;
