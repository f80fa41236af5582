import {parseArgs} from 'node:util';
import {runSoak} from './load/run-soak.ts';
import {prepareTests} from './prepare-tests.ts';

/** `npm run soak -- --minutes N [--seed N]`: random load and trouble on three nodes; fails when anything is left over. */

const {values} = parseArgs({options: {minutes: {type: 'string', default: '30'}, seed: {type: 'string', default: '1'}}});
Object.assign(process.env, await prepareTests());
const {minutes, seed} = values;
console.log(`${minutes} minutes on three nodes, seed ${seed}`);
const report = await runSoak({minutes: Number(minutes), seed: Number(seed), say: line => console.log(line)});
console.log(`\nhow ${report.outcomes.total} requests ended\n${report.outcomes.list()}`);
console.log(`\nwhat disturbed them\n${report.disturbances.list()}\n`);
for (const {name, residentMiB, descriptors} of report.daemons) {
  const memory = residentMiB.map(part => part.toFixed(0)).join(', ');
  console.log(`${name.padEnd(6)} ${memory} MiB by thirds; ${descriptors.join(' then ')} descriptors`);
}
console.log(report.faults.length === 0 ? '\nnothing is left over' : `\nWRONG:\n${report.faults.join('\n')}`);
process.exitCode = report.faults.length === 0 ? 0 : 1;
