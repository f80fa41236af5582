import {parseArgs} from 'node:util';
import {simulate} from '../test/sim/world.ts';

/** `npm run sim -- --seed N [--seconds N]`: one simulated world, with everything that happened in it. */

const {values} = parseArgs({options: {seed: {type: 'string', default: '1'}, seconds: {type: 'string', default: '30'}}});
const {events, outcomes, broken} = await simulate({seed: Number(values.seed), seconds: Number(values.seconds)});
for (const event of events) console.log(event);
console.log([...outcomes].map(([outcome, count]) => `${count} ${outcome}`).join(', '));
for (const rule of broken) console.log(`BROKEN ${rule}`);
process.exitCode = broken.length === 0 ? 0 : 1;
