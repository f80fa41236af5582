import {randomUUID} from 'node:crypto';
import {mkdtemp, rm} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {setTimeout as sleep} from 'node:timers/promises';
import type {ExecutionContext} from 'ava';
import {startDaemon} from '../support/daemon.ts';
import type {Daemon} from '../support/daemon.ts';
import {modelFolder} from '../support/models.ts';
import {alive, curl, meetMsMax, netTest, nodes} from '../support/net-trial.ts';
import {switchedLan} from '../support/network-namespaces.ts';
import type {SwitchedLan} from '../support/network-namespaces.ts';
import {timed, until} from '../support/until.ts';

interface Trial {
  readonly lan: SwitchedLan;
  /** Starts the daemon of a host, also again on the same files. */
  readonly start: (index: number) => Promise<Daemon>;
}

/** Hosts `h0`, `h1` … of which those named have the toy model. */
async function trial(t: ExecutionContext, hosts: number, holders: readonly number[]): Promise<Trial> {
  const lan = switchedLan(t, hosts);
  const mesh = `test-${randomUUID().slice(0, 8)}`;
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-ladder-'));
  t.teardown(async () => rm(folder, {recursive: true, force: true, maxRetries: 3}));
  const models = await modelFolder(t, 'tiny-count-F16.gguf');
  return {
    lan,
    start: async index =>
      startDaemon(t, {
        name: `h${index}`,
        mesh,
        meshPort: 4328,
        models: holders.includes(index) ? [models] : [],
        dataFolder: join(folder, String(index)),
        within: lan.within(index),
      }),
  };
}

/** Milliseconds until the observer sees exactly these nodes alive. */
async function msUntil(observer: Daemon, names: string, limitMs: number): Promise<number> {
  const {ms} = await timed(async () =>
    until(`${observer.name} sees ${names}`, async () => (await alive(observer)) === names, limitMs),
  );
  return Math.round(ms);
}

/** Whether the host gets an answer from the toy model, wherever it runs. */
async function isServed(daemon: Daemon): Promise<boolean> {
  const question = {model: 'tiny-count-F16', max_tokens: 3, messages: [{role: 'user', content: 'count'}]};
  return / 1 2 3"/u.test(await curl(daemon, '/v1/chat/completions', '-d', JSON.stringify(question)));
}

/** Where a step of the ladder begins and ends. */
interface Rung {
  readonly name: string;
  readonly fail: () => unknown;
  /** The loss must be seen within this time on a machine that has nothing else to do. */
  readonly lostMsMax: number;
  readonly mend: () => unknown;
}

netTest('S71: each way to lose a node is noticed, and each one that returns is used again', async t => {
  t.timeout(900_000);
  const {lan, start} = await trial(t, 3, [1]);
  const [observer, first] = await Promise.all([start(0), start(1), start(2)]);
  let victim = first;
  let undo = (): void => undefined;
  const again = async (): Promise<void> => void (victim = await start(1));
  const rungs: readonly Rung[] = [
    {name: 'clean leave', fail: () => victim.kill('SIGTERM'), lostMsMax: 2000, mend: again},
    {name: 'kill -9', fail: () => victim.kill('SIGKILL'), lostMsMax: 2000, mend: again},
    {name: 'SIGSTOP', fail: () => victim.kill('SIGSTOP'), lostMsMax: 9000, mend: () => victim.kill('SIGCONT')},
    {name: 'cable', fail: () => lan.cable(1, 'down'), lostMsMax: 9000, mend: () => lan.cable(1, 'up')},
    {name: 'sends into a black hole', fail: () => (undo = lan.lose(1, 'sent')), lostMsMax: 9000, mend: () => undo()},
    {name: 'hears nothing', fail: () => (undo = lan.lose(1, 'received')), lostMsMax: 9000, mend: () => undo()},
  ];
  await msUntil(observer, 'h0 h1 h2', meetMsMax);
  for (const {name, fail, lostMsMax, mend} of rungs) {
    await until(`it is served before: ${name}`, async () => isServed(observer), meetMsMax);
    await fail();
    const lostMs = await msUntil(observer, 'h0 h2', lostMsMax);
    if (mend === again) await victim.exited;
    await sleep(3000);
    await mend();
    const backMs = await msUntil(observer, 'h0 h1 h2', meetMsMax);
    const {ms: servedMs} = await timed(async () => until('served again', async () => isServed(observer), meetMsMax));
    t.log(`${name}: noticed after ${lostMs} ms, back after ${backMs} ms, served ${Math.round(servedMs)} ms later`);
  }
  t.pass();
});

/** Issue 6 asks for ninety; that takes a person's patience: `HEARSAY_PARTITION_S=90 npm run test:net`. */
const partitionMs = 1000 * Number(process.env['HEARSAY_PARTITION_S'] ?? 15);

netTest('R36, R37, R40: both halves of a partition serve, and nobody comes back as a ghost when it heals', async t => {
  t.timeout(600_000);
  const {lan, start} = await trial(t, 4, [1, 3]);
  const [h0, h1, h2, h3] = await Promise.all([start(0), start(1), start(2), start(3)]);
  for (const each of [h0, h1, h2, h3]) await msUntil(each, 'h0 h1 h2 h3', meetMsMax);

  const heal = [0, 1].map(index => lan.lose(index, {peers: [2, 3]}));
  const apart = [await msUntil(h0, 'h0 h1', 9000), await msUntil(h2, 'h2 h3', 9000)];
  for (const each of [h0, h2]) await until('each half serves', async () => isServed(each), meetMsMax);
  await h3.stop(); // h0 and h1 cannot hear that it leaves
  await sleep(partitionMs);
  for (const undo of heal) undo();
  const {ms: together} = await timed(async () =>
    Promise.all([h0, h1, h2].map(async each => msUntil(each, 'h0 h1 h2', meetMsMax))),
  );
  t.log(
    `apart after ${apart.join(' and ')} ms for ${partitionMs} ms, together ${Math.round(together)} ms after healing`,
  );
  for (let look = 0; look < 10; look += 1) {
    for (const each of [h0, h1, h2]) {
      const names = (await nodes(each)).map(({name}) => name).toSorted();
      t.deepEqual(names, ['h0', 'h1', 'h2'], `${each.name} lists each once, and not the one that left`);
    }
    await sleep(500);
  }
  await until('the other half serves it now', async () => isServed(h2), meetMsMax);
});
