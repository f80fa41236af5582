import {randomUUID} from 'node:crypto';
import type {ExecutionContext} from 'ava';
import type {NodeReport} from '@hearsay/core';
import {startDaemon} from '../support/daemon.ts';
import type {Daemon, DaemonOptions} from '../support/daemon.ts';
import {modelFolder} from '../support/models.ts';
import {alive, curl, meetMsMax, netShared, netTest, nodes} from '../support/net-trial.ts';
import {switchedLan} from '../support/network-namespaces.ts';
import type {SwitchedLan} from '../support/network-namespaces.ts';
import type {Ends} from '../support/shared.ts';
import {until} from '../support/until.ts';

interface Trial {
  readonly lan: SwitchedLan;
  /** Starts `h0`, `h1` … on its own host unless told otherwise; the first has the toy model. */
  readonly start: (index: number, options?: DaemonOptions & {readonly host?: number}) => Promise<Daemon>;
}

async function trial(t: Ends & Partial<ExecutionContext>, hosts: number): Promise<Trial> {
  t.timeout?.(400_000);
  const lan = switchedLan(t, hosts);
  const mesh = `test-${randomUUID().slice(0, 8)}`;
  const folder = await modelFolder(t, 'tiny-count-F16.gguf');
  return {
    lan,
    start: async (index, {host = index, ...options} = {}) =>
      startDaemon(t, {
        name: `h${index}`,
        mesh,
        meshPort: 4328,
        models: index === 0 ? [folder] : [],
        within: lan.within(host),
        ...options,
      }),
  };
}

/** All of them, whatever their state, by name. */
async function named(daemon: Daemon, name: string): Promise<readonly NodeReport[]> {
  return (await nodes(daemon)).filter(node => node.name === name);
}

/** Where a node listens its peers learn a moment after they have met, of one that has called them. */
async function isShownAt(daemon: Daemon, name: string, address: string): Promise<void> {
  const isShown = async (): Promise<boolean> => (await named(daemon, name)).some(node => node.address === address);
  await until(`${name} is shown at ${address}`, isShown, meetMsMax);
}

async function meet(daemons: readonly Daemon[], names: string): Promise<void> {
  for (const daemon of daemons) {
    await until(`${daemon.name} sees ${names}`, async () => (await alive(daemon)) === names, meetMsMax);
  }
}

async function isServed(daemon: Daemon): Promise<boolean> {
  const question = {model: 'tiny-count-F16', max_tokens: 3, messages: [{role: 'user', content: 'count'}]};
  return / 1 2 3"/u.test(await curl(daemon, '/v1/chat/completions', '-d', JSON.stringify(question)));
}

/** Two hosts of which nothing is odd, for a test that only adds a node and the last one, that restarts the second. */
const plain = netShared('two hosts', async ends => {
  const {lan, start} = await trial(ends, 2);
  const [h0, h1] = await Promise.all([start(0), start(1)]);
  return {lan, start, h0, h1};
});

netTest(
  'R49, R51, R52: hosts with many interfaces, of which some have equal addresses, are one entry each',
  async t => {
    const {lan, start} = await trial(t, 2);
    const equal = ['docker0 172.17.0.1/16', 'br-0123456789ab 172.18.0.1/16', 'vboxnet0 192.168.56.1/24'];
    for (const host of [0, 1]) {
      for (const [index, text] of equal.entries()) {
        const [name = '', address = ''] = text.split(' ');
        lan.ip(host, 'link', 'add', name, 'type', 'veth', 'peer', 'name', `other${index}`);
        lan.ip(host, 'addr', 'add', address, 'dev', name);
        for (const each of [name, `other${index}`]) lan.ip(host, 'link', 'set', each, 'up');
      }
    }
    const [h0, h1] = await Promise.all([start(0), start(1)]);
    await meet([h0, h1], 'h0 h1');
    await until('h0 serves h1', async () => isServed(h1), meetMsMax);
    for (const [daemon, other] of [
      [h0, 1],
      [h1, 0],
    ] as const) {
      await isShownAt(daemon, `h${other}`, `${lan.address(other)}:4328`);
      t.is((await named(daemon, `h${other}`)).length, 1);
      t.is((await nodes(daemon)).length, 2);
      t.notRegex(daemon.stderr(), /uses the same key/u, 'no host takes itself for another');
    }
  },
);

netTest('interfaces come and go, with other addresses too, and the nodes meet without a restart', async t => {
  const {lan, start} = await trial(t, 2);
  const [, host = ''] = /^(.*\.)\d+$/u.exec(lan.address(1)) ?? [];
  lan.ip(1, 'addr', 'del', `${lan.address(1)}/24`, 'dev', 'eth0');
  const [h0, h1] = await Promise.all([start(0), start(1)]);
  t.deepEqual([await alive(h0), await alive(h1)], ['h0', 'h1']);
  for (const address of [lan.address(1), `${host}101`]) {
    lan.ip(1, 'addr', 'add', `${address}/24`, 'dev', 'eth0');
    await meet([h0, h1], 'h0 h1');
    await until('h0 serves h1', async () => isServed(h1), meetMsMax);
    await isShownAt(h0, 'h1', `${address}:4328`);
    lan.ip(1, 'addr', 'del', `${address}/24`, 'dev', 'eth0');
    await meet([h0], 'h0');
  }
});

netTest('R46: where multicast is blocked, a peer named on one side is enough, and is found again for ever', async t => {
  const {lan, start} = await trial(t, 3);
  for (const host of [0, 1, 2]) lan.muteMulticast(host);
  const [h0, alone] = await Promise.all([start(0), start(2)]);
  const h1 = await start(1, {peers: [lan.address(0)]});
  await meet([h0, h1], 'h0 h1');
  await until('h0 serves h1', async () => isServed(h1), meetMsMax);
  t.is(await alive(alone), 'h2', 'nobody named this one, so multicast was really blocked');
  lan.cable(0, 'down');
  await meet([h1], 'h1');
  lan.cable(0, 'up');
  await meet([h0, h1], 'h0 h1');
});

netTest('R48: on a link with IPv6 only, a peer named by its link-local address and interface is a member', async t => {
  const {lan, start} = await trial(t, 2);
  for (const host of [0, 1]) lan.ip(host, 'addr', 'del', `${lan.address(host)}/24`, 'dev', 'eth0');
  const isSettled = (): boolean => [0, 1].every(host => lan.linkLocal(host) !== '');
  await until('both have link-local addresses', isSettled, meetMsMax);
  const h0 = await start(0, {peers: [`[${lan.linkLocal(1)}%eth0]:4328`]});
  const h1 = await start(1, {peers: [`/ip6zone/eth0/ip6/${lan.linkLocal(0)}/tcp/4328`]});
  await meet([h0, h1], 'h0 h1');
  await until('h0 serves h1', async () => isServed(h1), meetMsMax);
  t.is((await named(h1, 'h0')).length, 1);
});

netTest('R60: where firewalls close the ports of both hosts, the doctor names the port of the other one', async t => {
  const {lan, start} = await trial(t, 2);
  for (const host of [0, 1]) lan.closePort(host, 4328);
  const [h0] = await Promise.all([start(0), start(1)]);
  const warning = new RegExp(String.raw`warning +firewall +.*${lan.address(1)}:4328`, 'u');
  const doctor = async (): Promise<boolean> => warning.test((await h0.cli('doctor')).stdout);
  await until('it is named', doctor, meetMsMax);
  t.is(await alive(h0), 'h0');
});

netTest('R58: two daemons on one host, told the same port, meet each other and the rest of the LAN', async t => {
  t.timeout(400_000);
  const {lan, start, h0, h1} = plain();
  const h2 = await start(2, {host: 0});
  t.teardown(async () => h2.stop());
  await meet([h0, h1, h2], 'h0 h1 h2');
  await until('h0 serves the other one', async () => isServed(h2), meetMsMax);
  await isShownAt(h1, 'h2', `${lan.address(0)}:4329`);
  t.is((await named(h1, 'h2')).length, 1);
});

netTest('R39, R55: a node that restarts five times stays one entry, the same node, at the same address', async t => {
  t.timeout(400_000);
  const {lan, start, h0, h1: original} = plain();
  const {dataFolder} = original;
  let h1 = original;
  await meet([h0, h1], 'h0 h1');
  const address = `${lan.address(1)}:4328`;
  await isShownAt(h0, 'h1', address);
  const [first] = await named(h0, 'h1');
  for (const signal of ['SIGKILL', 'SIGTERM', 'SIGKILL', 'SIGTERM', 'SIGKILL'] as const) {
    h1.kill(signal);
    await h1.exited;
    h1 = await start(1, {dataFolder});
    await meet([h0, h1], 'h0 h1');
    await isShownAt(h0, 'h1', address);
    const [again, ...more] = await named(h0, 'h1');
    t.is(again?.id, first?.id);
    t.deepEqual(more, []);
  }
});
