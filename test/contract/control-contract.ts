import {Fault} from '@hearsay/core';
import type {ControlAnswer, ControlRequest, NodeId} from '@hearsay/core';
import {digest} from '../support/builders.ts';
import {fails, linkedPair, never, serve} from '../support/mesh-trial.ts';
import type {Check} from '../support/mesh-trial.ts';

/** What every mesh must do with wishes about engines. */
export function controlContract(check: Check): void {
  const stop: ControlRequest = {kind: 'stop', digest: digest('a')};

  check('a wish and its answer arrive as they were, and the asked node knows who wishes', async (t, place) => {
    const [a, b] = await linkedPair(place);
    const heard: [ControlRequest, NodeId][] = [];
    const answer: ControlAnswer = {kind: 'logs', page: {lines: ['one'], first: 3, next: 4}};
    b.control = async (request, from) => {
      heard.push([request, from]);
      return answer;
    };
    t.deepEqual(await a.mesh.control(b.mesh.self, stop, never), answer);
    t.deepEqual(heard, [[stop, a.mesh.self]]);
  });

  check('a wish that the asked node cannot fulfil is refused with its reason', async (t, place) => {
    const [a, b] = await linkedPair(place);
    b.control = async () => {
      throw new Fault('INTERNAL', 'the cupboard is bare');
    };
    t.deepEqual(await a.mesh.control(b.mesh.self, stop, never), {kind: 'refused', message: 'the cupboard is bare'});
  });

  check('a wish to a node that is not there fails with PEER_FAILED', async (t, place) => {
    const a = await serve(await place.mesh('a'));
    const absent = await place.mesh('absent');
    await fails(t, a.mesh.control(absent.self, stop, never));
  });
}
