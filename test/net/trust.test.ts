import {execFileSync} from 'node:child_process';
import {randomUUID} from 'node:crypto';
import {cp, mkdtemp, rm} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import type {ExecutionContext} from 'ava';
import {startDaemon} from '../support/daemon.ts';
import {alive, meetMsMax, netTest, nodes, says} from '../support/net-trial.ts';
import {switchedLan} from '../support/network-namespaces.ts';
import {until} from '../support/until.ts';

async function dataFolder(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-trust-'));
  t.teardown(async () => rm(folder, {recursive: true, force: true}));
  return folder;
}

netTest('a node on a network that it does not know admits nobody, says so, and is told by one command', async t => {
  t.timeout(300_000);
  const lan = switchedLan(t, 2);
  const mesh = `test-${randomUUID().slice(0, 8)}`;
  const common = {mesh, meshPort: 4328};
  const home = await dataFolder(t);
  const first = await startDaemon(t, {name: 'laptop', ...common, within: lan.within(0), dataFolder: home});
  t.regex(first.stdout(), /open to this LAN: 10\.77\.\d+\.0\/24/u);
  await first.stop();
  const address = (host: number, ...change: readonly string[]): void =>
    void execFileSync('ip', [...lan.within(host).slice(1), 'ip', 'addr', ...change, 'dev', 'eth0']);
  for (const host of [0, 1]) {
    address(host, 'del', `${lan.address(host)}/24`);
    address(host, 'add', `10.88.0.${host + 1}/24`);
  }
  const [laptop, other] = await Promise.all([
    startDaemon(t, {name: 'laptop', ...common, within: lan.within(0), dataFolder: home}),
    startDaemon(t, {name: 'other', ...common, within: lan.within(1)}),
  ]);
  t.regex(laptop.stdout(), /open to this machine only/u);
  t.regex(laptop.stdout(), /note {6}the network 10\.88\.0\.0\/24 \(eth0\) is not trusted/u);
  const note = await until(
    'the other is seen',
    async () => (await nodes(laptop)).find(({state}) => state === 'seen')?.note,
    meetMsMax,
  );
  t.regex(note, /hearsay network trust eth0/u);
  t.is(await alive(laptop), 'laptop');
  t.is(await alive(other), 'other');
  t.regex(await says(laptop, 'network', 'ls'), /eth0 +10\.88\.0\.0\/24 +- +lan +no/u);

  t.regex(await says(laptop, 'network', 'trust', 'eth0'), /open to this LAN: 10\.88\.0\.0\/24/u);
  await until('they meet', async () => (await alive(laptop)) === 'laptop other', 2 * meetMsMax);
  await until('both', async () => (await alive(other)) === 'laptop other', meetMsMax);
  for (const [what, why] of [
    ['8.8.8.0/24', /has public addresses, and only private ones are ever trusted.*hearsay invite/u],
    ['0.0.0.0/0', /has public addresses/u],
    ['lo0', /neither a subnet nor an interface/u],
  ] as const) {
    const answer = await laptop.cli('network', 'trust', what);
    t.is(answer.code, 2);
    t.regex(answer.stderr, why);
  }
  await says(laptop, 'network', 'forget', 'eth0');
  await until('it is alone again', async () => (await alive(laptop)) === 'laptop', meetMsMax);
});

netTest('R57: two machines with one data folder name each other', async t => {
  t.timeout(300_000);
  const lan = switchedLan(t, 2);
  const mesh = `test-${randomUUID().slice(0, 8)}`;
  const [original, copy] = [await dataFolder(t), await dataFolder(t)];
  const common = {mesh, meshPort: 4328};
  const once = await startDaemon(t, {name: 'a', ...common, within: lan.within(0), dataFolder: original});
  await once.stop();
  await cp(original, copy, {recursive: true});
  const [a, b] = await Promise.all([
    startDaemon(t, {name: 'a', ...common, within: lan.within(0), dataFolder: original}),
    startDaemon(t, {name: 'b', ...common, within: lan.within(1), dataFolder: copy}),
  ]);
  const twin = (host: number): RegExp =>
    new RegExp(`${lan.address(host).replaceAll('.', String.raw`\.`)} uses the same key`, 'u');
  for (const [daemon, host] of [
    [a, 1],
    [b, 0],
  ] as const) {
    await until('it is named', () => twin(host).test(daemon.stderr()), meetMsMax);
    t.regex((await daemon.cli('members')).stderr, twin(host));
  }
});

netTest('R57: two daemons of one machine with copies of one data folder name each other', async t => {
  t.timeout(300_000);
  const lan = switchedLan(t, 1);
  const mesh = `test-${randomUUID().slice(0, 8)}`;
  const [original, copy] = [await dataFolder(t), await dataFolder(t)];
  const within = lan.within(0);
  const once = await startDaemon(t, {name: 'a', mesh, within, dataFolder: original});
  await once.stop();
  await cp(original, copy, {recursive: true});
  const a = await startDaemon(t, {name: 'a', mesh, meshPort: 4328, within, dataFolder: original});
  const b = await startDaemon(t, {name: 'b', mesh, meshPort: 4329, within, dataFolder: copy});
  for (const daemon of [a, b]) {
    await until('it is named', () => daemon.stderr().includes('uses the same key'), meetMsMax);
    t.regex((await daemon.cli('members')).stderr, /uses the same key/u);
  }
});
