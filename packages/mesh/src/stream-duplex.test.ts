import {setImmediate as turn} from 'node:timers/promises';
import type {Stream} from '@libp2p/interface';
import {streamPair} from '@libp2p/utils';
import {encode} from 'it-length-prefixed';
import test from 'ava';
import {Fault} from '@hearsay/core';
import {never, text} from '../../../test/support/mesh-trial.ts';
import {until} from '../../../test/support/until.ts';
import {StreamDuplex} from './stream-duplex.ts';

async function connected(): Promise<{near: StreamDuplex; far: Stream; errors: Error[]}> {
  const [outbound, far] = await streamPair();
  const near = new StreamDuplex(outbound);
  const errors: Error[] = [];
  near.on('error', error => void errors.push(error));
  return {near, far, errors};
}

function frame(value: string): Uint8Array {
  return encode.single(text(value)).subarray();
}

async function read(duplex: StreamDuplex): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of duplex) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString();
}

test('a frame arrives whole however it was cut, and what follows it belongs to the bytes', async t => {
  const {near, far} = await connected();
  const wanted = near.readFrame(1000, never);
  const bytes = Buffer.concat([frame('x'.repeat(300)), text('and the rest')]);
  for (const byte of bytes) {
    far.send(Uint8Array.of(byte));
    await turn();
  }
  await far.close();
  t.deepEqual(await wanted, text('x'.repeat(300)));
  near.startBytes();
  t.is(await read(near), 'and the rest');
});

test('frames that came before they were asked for are kept, one after the other', async t => {
  const {near, far} = await connected();
  far.send(Buffer.concat([frame('one'), frame('two')]));
  t.deepEqual(await near.readFrame(100, never), text('one'));
  t.deepEqual(await near.readFrame(100, never), text('two'));
});

test('what follows the last frame is bytes at once, however much of it comes in the same moment', async t => {
  const {near, far, errors} = await connected();
  const wanted = near.readFrame(100, never, 'last');
  far.send(Buffer.concat([frame('one'), Buffer.alloc(500_000, 'x')]));
  await far.close();
  t.deepEqual(await wanted, text('one'));
  t.is((await read(near)).length, 500_000);
  t.deepEqual(errors, []);
});

test('a frame that is larger than agreed is refused before it is read', async t => {
  const {near, far} = await connected();
  far.send(encode.single(new Uint8Array(101)).subarray(0, 10));
  const error = await t.throwsAsync(near.readFrame(100, never), {instanceOf: Fault});
  t.is(error.code, 'PEER_FAILED');
});

test('a length that never ends is refused', async t => {
  const {near, far} = await connected();
  far.send(new Uint8Array(64).fill(0xff));
  await t.throwsAsync(near.readFrame(100, never), {instanceOf: Fault});
});

test('a peer that ends or resets instead of sending a frame is a failure', async t => {
  for (const end of ['close', 'abort'] as const) {
    const {near, far} = await connected();
    const wanted = near.readFrame(100, never);
    if (end === 'close') await far.close();
    else far.abort(new Error('gone'));
    await t.throwsAsync(wanted, undefined, end);
  }
});

test('waiting for a frame ends with the signal', async t => {
  const {near} = await connected();
  const stop = new AbortController();
  const wanted = near.readFrame(100, stop.signal);
  stop.abort(new Error('enough'));
  await t.throwsAsync(wanted, {message: 'enough'});
});

test('a reader that pauses still gets everything that came before the peer closed', async t => {
  const {near, far} = await connected();
  near.startBytes();
  near.pause();
  const sent = 'y'.repeat(1_000_000);
  far.send(text(sent));
  await far.close();
  await turn();
  near.end(); // both sides are closed now, and most of it is unread
  await until('both sides are closed', () => far.status !== 'open');
  t.is((await read(near)).length, sent.length);
});

test('destroying resets the stream, and a reset of the peer destroys', async t => {
  const one = await connected();
  one.near.destroy();
  await until('the peer sees the reset', () => one.far.status === 'reset');
  const other = await connected();
  other.far.abort(new Error('gone'));
  await until('it is destroyed', () => other.near.destroyed);
  t.is(other.errors.length, 1);
});

test('the end of the peer is an end: whether the answer is whole, the framing of HTTP must say', async t => {
  const {near, far} = await connected();
  near.startBytes();
  far.send(text('half an ans'));
  await far.close();
  t.is(await read(near), 'half an ans');
});
