import {encodeBeat, encodeInventory, Fault} from '@hearsay/core';
import test from 'ava';
import {beat, clientRequest, digest, directLink, engineBeat, model, node} from '../../../test/support/builders.ts';
import {manualClock} from '../../../test/support/manual-clock.ts';
import {scriptedLease, scriptedWorker} from '../../../test/support/scripted-worker.ts';
import {Affinity} from './affinity.ts';
import {inventoryDigest} from './announcer.ts';
import {chooseNode} from './choose-node.ts';
import {dispatch} from './dispatch.ts';
import {failingEngines} from './failing-engines.ts';
import {startViewKeeper} from './view-keeper.ts';

const self = node('S');
const a = digest('a');
const accepted = {digests: [a], exact: true};
const config = {spread: 'auto', affinityKey: () => '', firstByteMsMin: 1000, firstByteMsMax: 1000} as const;

/** This node alone, whose engine fails every request. */
function trial() {
  const clock = manualClock();
  const mesh = {
    self,
    inventory: async () => new Uint8Array(),
    worker: () => {
      throw new Error('there is no other node');
    },
  };
  const keeper = startViewKeeper({clock, log: () => undefined, mesh});
  const own = {beat: beat('S', {engines: [engineBeat('a', {ageSeconds: 3600})]}), models: [model('m', 'a')]};
  const failing = failingEngines({clock, self: () => own, view: keeper.view});
  const local = scriptedWorker(self, scriptedLease([new Fault('ENGINE_FAILED', 'gone')]));
  const announcer = {self: () => own};
  const deps = {mesh, clock, keeper, announcer, affinity: new Affinity(), failing, local};
  const request = clientRequest();
  const choose = () => chooseNode({...request, promptBytes: 3}, config, deps, () => undefined);
  const fail = async (): Promise<unknown> =>
    dispatch(request, accepted, choose(), new AbortController().signal).catch(error => error);
  const aloneMs = (): number =>
    (failing.reach(new Map(), [a]).get(self)?.quarantinedUntilMs ?? 0) - clock.monotonicMs();
  return {aloneMs, choose, clock, fail, keeper, local};
}

test('R30: an offer to an engine that was left alone keeps the others away until it is answered', async t => {
  const {aloneMs, choose, clock, fail, keeper, local} = trial();
  for (let times = 0; times < 3; times += 1) await fail();
  t.is(local.offers.length, 3, 'nobody else is left, so it is asked all the same');
  t.is(aloneMs(), 1000);
  await clock.advance(1500);
  t.true(aloneMs() < 0);
  const [offer] = local.offers;
  if (offer) await choose().worker(self).offer(offer, new AbortController().signal);
  t.is(aloneMs(), 1000);
  keeper[Symbol.dispose]();
});

test('a request that has ended at a peer is not its load any more, also when no record tells of that', async t => {
  const clock = manualClock();
  const peer = node('P');
  const inventory = encodeInventory({models: [model('m', 'a')]});
  const remote = scriptedWorker(peer, {...scriptedLease(['x', 'y']), loadSeq: 7});
  const mesh = {self, inventory: async () => inventory, worker: () => remote};
  const keeper = startViewKeeper({clock, log: () => undefined, mesh});
  keeper.linkChanged(peer, directLink(peer));
  const payload = encodeBeat(beat('P', {inventory: inventoryDigest(inventory), engines: [engineBeat('a')]}));
  keeper.judge({record: {node: peer, payload, signature: new Uint8Array(64)}, ageMs: 0});
  await clock.advance(10);
  const own = {beat: beat('S'), models: []};
  const failing = failingEngines({clock, self: () => own, view: keeper.view});
  const local = scriptedWorker(self, new Error('it has no model'));
  const deps = {mesh, clock, keeper, announcer: {self: () => own}, affinity: new Affinity(), failing, local};
  const request = clientRequest();
  const choice = chooseNode({...request, promptBytes: 3}, config, deps, () => undefined);
  const ownOffers = (): number | undefined => keeper.reach().get(peer)?.ownOffers;
  const started = await dispatch(request, accepted, choice, new AbortController().signal);
  choice.started(started);
  t.is(ownOffers(), 1, 'no record knows of it yet');
  for await (const _chunk of started.body);
  t.is(ownOffers(), 0);
  keeper[Symbol.dispose]();
});
