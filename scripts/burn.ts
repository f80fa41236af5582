import {spawn} from 'node:child_process';
import {parseArgs} from 'node:util';
import {setTimeout as sleep} from 'node:timers/promises';
import {chatText} from '../test/support/chat.ts';
import {startDaemon} from '../test/support/daemon.ts';
import {modelFolder} from '../test/support/models.ts';
import {aliveNames} from '../test/support/reports.ts';
import {until} from '../test/support/until.ts';
import {prepareTests} from './prepare-tests.ts';

/**
 * `npm run burn -- --minutes N --burners N`: three nodes that share their processors with programs which never rest.
 * Nobody leaves, so whenever a node does not see another that is there, it was removed falsely: such looks are counted,
 * and what the nodes themselves noted in their logs. Fails when there is any.
 */
const {values} = parseArgs({
  options: {minutes: {type: 'string', default: '10'}, burners: {type: 'string', default: '4'}},
});
const minutes = Number(values.minutes);
Object.assign(process.env, await prepareTests());
const closing: (() => unknown)[] = [];
const t = {teardown: (run: () => unknown): void => void closing.push(run)};
await using cleanup = new AsyncDisposableStack();
cleanup.defer(async () => void (await Promise.all(closing.toReversed().map(async run => run()))));

const mesh = `burn-${process.pid}`;
const model = 'tiny-count-F16';
const folder = await modelFolder(t, `${model}.gguf`);
const daemons = await Promise.all(
  ['a', 'b', 'c'].map(async name => startDaemon(t, {name, mesh, models: name === 'a' ? [folder] : []})),
);
const everybody = async (url: string): Promise<boolean> => (await aliveNames(url)).length === daemons.length;
for (const {url, name} of daemons) await until(`${name} sees all`, async () => everybody(url), 60_000);
for (const {url} of daemons) await until('it is served', async () => isServed(url), 60_000);

for (let burner = 0; burner < Number(values.burners); burner += 1) {
  const child = spawn(process.execPath, ['-e', 'for (;;);'], {stdio: 'ignore'});
  cleanup.defer(() => void child.kill('SIGKILL'));
}
console.log(`${minutes} minutes, three nodes and ${values.burners} programs that never rest`);

let looks = 0;
let missed = 0;
let asked = 0;
let failed = 0;
const endMs = performance.now() + minutes * 60_000;
while (performance.now() < endMs) {
  for (const {url, name} of daemons) {
    looks += 1;
    const names = await aliveNames(url);
    if (names.length === daemons.length) continue;
    missed += 1;
    console.log(`${name} sees only ${names.join(', ')}`);
  }
  if (looks % 30 === 0) {
    for (const {url} of daemons) {
      asked += 1;
      if (!(await isServed(url))) failed += 1;
    }
  }
  await sleep(500);
}
const noted = daemons.flatMap(daemon =>
  daemon
    .stderr()
    .split('\n')
    .filter(line => /node (?:expired|left)|does not answer/u.test(line))
    .map(line => `${daemon.name}: ${line}`),
);
for (const line of noted) console.log(line);
console.log(`${missed} of ${looks} looks missed a node that was there; the nodes noted ${noted.length} removals`);
console.log(`${failed} of ${asked} requests failed`);
process.exitCode = missed + noted.length + failed === 0 ? 0 : 1;

async function isServed(url: string): Promise<boolean> {
  const answer = await chatText(url, {model, max_tokens: 3});
  return answer.status === 200 && answer.text === ' 1 2 3';
}
