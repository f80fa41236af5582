import type {Place, RequestId} from '@hearsay/core';
import {Fault, newRequestId} from '@hearsay/core';
import test from 'ava';
import {manualClock} from '../../../test/support/manual-clock.ts';
import {FairQueue, queueLimits} from './fair-queue.ts';
import type {QueueLimits, Room, Turn, Waiter} from './fair-queue.ts';

const never = new AbortController().signal;

function trial(limits: Partial<QueueLimits> = {}) {
  const clock = manualClock();
  const queue = new FairQueue({...queueLimits, ...limits}, clock);
  const served: string[] = [];
  const turns: Turn[] = [];
  const places = new Map<string, Place>();
  const ids = new Map<string, RequestId>();
  let made = 0;
  /** `A1` is the first request of the client A. */
  async function ask(name: string, changes: Partial<Waiter> = {}, signal = never): Promise<void> {
    made += 1;
    const request = newRequestId({next: () => 0, bytes: length => new Uint8Array(length).fill(made)});
    ids.set(name, request);
    const waiter = {request, client: name.slice(0, 1), bytes: 10, capacity: 1, holdMs: 1000, ...changes};
    turns.push(await queue.turn('m', waiter, place => places.set(name, place), signal));
    served.push(name);
  }
  /** The oldest turn ends. */
  async function next(): Promise<void> {
    turns.shift()?.[Symbol.dispose]();
    await clock.advance(0);
  }
  const placeOf = (name: string): Place | undefined => {
    const id = ids.get(name);
    return id && queue.placeOf(id);
  };
  return {queue, clock, served, places, ask, next, placeOf};
}

test('a client with one request is not behind all of a client with many', async t => {
  const {ask, next, served} = trial();
  const asked = ['A1', 'A2', 'A3', 'A4', 'B1', 'C1', 'C2'].map(async name => ask(name));
  for (let count = 0; count < 7; count += 1) await next();
  await Promise.all(asked);
  t.deepEqual(served, ['A1', 'A2', 'B1', 'C1', 'A3', 'C2', 'A4']);
});

test('as many have their turn at once as there are slots, and more when there are more', async t => {
  const {ask, clock, served, queue} = trial();
  void ask('A1', {capacity: 2});
  void ask('A2', {capacity: 2});
  void ask('A3', {capacity: 2});
  await clock.advance(0);
  t.deepEqual(served, ['A1', 'A2']);
  t.true(queue.isCrowded('m'));
  void ask('B1', {capacity: 4});
  await clock.advance(0);
  t.deepEqual(served, ['A1', 'A2', 'A3', 'B1']);
  t.false(queue.isCrowded('m'));
});

test('the place is the one in which it will be served, and the wait follows from it', async t => {
  const {ask, clock, next, placeOf, places} = trial();
  for (const name of ['A1', 'A2', 'A3', 'B1']) void ask(name);
  await clock.advance(0);
  await next();
  t.deepEqual(places.get('A3'), {position: 2, waitMs: 2000}, 'as it was when it came');
  t.is(placeOf('B1')?.position, 1);
  t.is(placeOf('A3')?.position, 2);
  t.is(placeOf('A1'), undefined);
});

test('R1: whoever goes away leaves no gap and holds nobody up', async t => {
  const {ask, next, served, placeOf} = trial();
  const gone = new AbortController();
  void ask('A1');
  const left = ask('B1', {}, gone.signal);
  void ask('C1');
  gone.abort();
  await t.throwsAsync(left);
  t.is(placeOf('C1')?.position, 1);
  await next();
  await next();
  t.deepEqual(served, ['A1', 'C1']);
});

test('C42, S79: over the bound it is refused with a wait that is true, and one client cannot take all places', async t => {
  const {ask} = trial({countMax: 4});
  void ask('A1');
  void ask('A2');
  void ask('A3');
  const own = await t.throwsAsync(ask('A4'), {instanceOf: Fault, message: /of this client/u});
  t.is(own.code, 'OVERLOADED');
  t.is(own.details['retryAfterMs'], 3000);
  void ask('B1');
  void ask('C1');
  await t.throwsAsync(ask('D1'), {instanceOf: Fault, message: /too many requests wait/u});
});

test('the bytes of waiting requests are bounded too', async t => {
  const {ask, next, clock} = trial({bytesMax: 100});
  void ask('A1', {bytes: 1000});
  void ask('A2', {bytes: 40});
  void ask('B1', {bytes: 40});
  await t.throwsAsync(ask('C1', {bytes: 40}), {instanceOf: Fault});
  await next();
  void ask('C2', {bytes: 40});
  await clock.advance(0);
  t.pass();
});

test('nobody waits for ever', async t => {
  const {ask, clock, placeOf} = trial({waitMsMax: 5000});
  void ask('A1');
  const late = ask('B1');
  const told = t.throwsAsync(late, {instanceOf: Fault, message: /waited too long/u});
  await clock.advance(5001);
  t.is((await told).code, 'OVERLOADED');
  t.is(placeOf('B1'), undefined);
});

test('what has ended leaves nothing behind', async t => {
  const {ask, next, queue, clock} = trial();
  void ask('A1');
  void ask('A2');
  await clock.advance(0);
  await next();
  await next();
  t.false(queue.isCrowded('m'));
  void ask('B1');
  await clock.advance(0);
  t.false(queue.isCrowded('m'));
});

test('a node that comes while all wait is used, though no turn has ended', async t => {
  const {ask, clock, served} = trial();
  let capacity = 1;
  const look = (): Room => ({capacity, isFree: false});
  for (const name of ['A1', 'A2', 'B1', 'C1']) void ask(name, {look});
  await clock.advance(1000);
  t.deepEqual(served, ['A1']);
  capacity = 3;
  await clock.advance(1000);
  t.deepEqual(served, ['A1', 'A2', 'B1']);
});

test('a slot that has become free elsewhere is used, though all turns stand in line where it is not', async t => {
  const {ask, clock, served} = trial();
  let isFree = false;
  const look = (): Room => ({capacity: 2, isFree});
  for (const name of ['A1', 'A2', 'A3', 'B1']) void ask(name, {look, capacity: 2});
  await clock.advance(1000);
  t.deepEqual(served, ['A1', 'A2']);
  isFree = true;
  await clock.advance(250);
  t.deepEqual(served, ['A1', 'A2', 'A3']);
});

test('a slot that is said to be free and is not lets only some more stand in line', async t => {
  const {ask, clock, served} = trial();
  const look = (): Room => ({capacity: 1, isFree: true});
  for (const name of ['A1', 'A2', 'A3', 'A4', 'A5']) void ask(name, {look});
  await clock.advance(60_000);
  t.deepEqual(served, ['A1', 'A2']);
});

test('more room is told by whoever comes, also when there is no place for it', async t => {
  const {ask, clock, served} = trial({countMax: 2});
  void ask('A1');
  void ask('B1');
  void ask('C1');
  await ask('D1', {capacity: 5});
  await clock.advance(0);
  t.deepEqual(served.toSorted(), ['A1', 'B1', 'C1', 'D1']);
});

test('of many lines a few look around at a time, and each in its turn', async t => {
  const {queue, clock} = trial();
  const looks = Array.from({length: 40}, () => 0);
  for (const index of looks.keys()) {
    for (const place of ['first', 'second']) {
      const bytes = Uint8Array.from({length: 12}, (_, at) => (at === 0 ? index : at === 1 ? place.length : 0));
      const request = newRequestId({next: () => 0, bytes: () => bytes});
      const look = (): Room => {
        looks[index] = (looks[index] ?? 0) + 1;
        return {capacity: 1, isFree: false};
      };
      void queue.turn(`${index}`, {request, client: 'A', bytes: 1, capacity: 1, holdMs: 1, look}, () => {}, never);
    }
  }
  await clock.advance(250);
  t.is(looks.filter(count => count > 0).length, 16);
  await clock.advance(500);
  t.true(looks.every(count => count > 0));
});
