import test from 'ava';
import {joinCluster} from '@hearsay/cluster';
import type {Cluster, Environment, Mesh} from '@hearsay/core';
import {memoryNetwork} from '@hearsay/mesh';
import {systemRandom} from '@hearsay/cli';
import {manualClock} from '../support/manual-clock.ts';
import {SimEngines} from './sim-engines.ts';
import {SimJournal} from './sim-journal.ts';
import {sameForAll} from './same-for-all.ts';
import {stored, storeOf} from './sim-store.ts';

test('a node that joins is told of everybody by the exchange, and nobody else says anything more because of it', async t => {
  const clock = manualClock();
  const environment: Environment = {clock, random: systemRandom, log: () => undefined};
  const network = memoryNetwork(environment, {seed: 1, delayMs: 1});
  const published = new Map<string, number>();
  const join = async (nodeName: string): Promise<Cluster> => {
    const mesh = counted(network.mesh(nodeName), () => {
      published.set(nodeName, (published.get(nodeName) ?? 0) + 1);
    });
    const engines = new SimEngines(nodeName, clock, []);
    const operatorStore = {read: async () => undefined, write: async () => undefined};
    const parts = {
      mesh,
      engines,
      models: storeOf([stored('a')]),
      journal: new SimJournal(() => undefined),
      operatorStore,
    };
    return joinCluster({...sameForAll, nodeName, boot: 1}, {...environment, ...parts});
  };
  const first = ['a', 'b', 'c', 'd'];
  for (const name of first) await join(name);
  await clock.advance(10_000);
  published.clear();
  for (const [index, name] of ['e', 'f', 'g', 'h', 'i', 'j'].entries()) {
    const late = await join(name);
    await clock.advance(500);
    t.is(late.nodes().length, first.length + index + 1);
  }
  await clock.advance(7000);
  for (const name of first) t.true((published.get(name) ?? 0) <= 6, `${name}: ${published.get(name)} records in 10 s`);
});

function counted(mesh: Mesh, count: () => void): Mesh {
  return {
    self: mesh.self,
    addresses: () => mesh.addresses(),
    serve: async handlers => mesh.serve(handlers),
    sign: async payload => mesh.sign(payload),
    async publish(record) {
      count();
      await mesh.publish(record);
    },
    inventory: async (peer, signal) => mesh.inventory(peer, signal),
    control: async (peer, request, signal) => mesh.control(peer, request, signal),
    links: () => mesh.links(),
    worker: peer => mesh.worker(peer),
    [Symbol.asyncDispose]: async () => mesh[Symbol.asyncDispose](),
  };
}
