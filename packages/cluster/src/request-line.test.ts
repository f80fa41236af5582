import type {Caller, ClientRequest} from '@hearsay/core';
import test from 'ava';
import {clientRequest, digest} from '../../../test/support/builders.ts';
import {manualClock} from '../../../test/support/manual-clock.ts';
import {FairQueue, queueLimits} from './fair-queue.ts';
import {lineFor} from './request-line.ts';

const never = new AbortController().signal;

/** Whether the second request waits because the first has the only slot that it knows of. */
async function waitsBehind(first: Partial<ClientRequest>, second: Partial<ClientRequest>): Promise<boolean> {
  const clock = manualClock();
  const queue = new FairQueue(queueLimits, clock);
  let waits = false;
  for (const [number, asked] of [first, second].entries()) {
    const line = lineFor(clientRequest(asked, number), [digest('a')], queue);
    void line?.turn({capacity: 1, holdMs: 1000}, never, () => (waits = true));
    await clock.advance(0);
  }
  return waits;
}

function keyFor(nodes: readonly string[] | undefined): Caller {
  return {name: 'k', rights: {models: undefined, workloads: undefined, nodes, policies: undefined}, policy: undefined};
}

test('requests for the same wait for each other', async t => {
  t.true(await waitsBehind({}, {}));
  t.true(await waitsBehind({caller: keyFor(undefined)}, {}));
});

test('a request whose key allows it other nodes holds nobody up who may use the rest', async t => {
  t.false(await waitsBehind({caller: keyFor(['A'])}, {}));
  t.false(await waitsBehind({caller: keyFor(['A'])}, {caller: keyFor(['B'])}));
});
