import {setImmediate as turn} from 'node:timers/promises';
import {yamux} from '@chainsafe/libp2p-yamux';
import type {Stream} from '@libp2p/interface';
import {multiaddrConnectionPair} from '@libp2p/utils';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {until} from '../../../test/support/until.ts';
import {updateSparingly} from './update-sparingly.ts';

interface Pair {
  readonly reader: Stream;
  readonly writer: Stream;
  /** Frames that the reader's side has sent. */
  readonly answers: () => number;
}

/** Two ends of a stream of the real yamux. */
async function pair(t: ExecutionContext): Promise<Pair> {
  const [near, far] = multiaddrConnectionPair();
  const multiplexers = [near, far].map(end => yamux({enableKeepAlive: false})().createStreamMuxer(end));
  t.teardown(() => multiplexers.map(each => each.abort(new Error('the test is over'))));
  const arrived = Promise.withResolvers<Stream>();
  multiplexers[1]?.addEventListener('stream', ({detail}) => arrived.resolve(detail));
  const writer = await multiplexers[0]?.createStream();
  if (writer === undefined) throw new Error('there is no stream');
  const reader = await arrived.promise;
  let answers = 0;
  near.addEventListener('message', () => (answers += 1));
  return {reader, writer, answers: () => answers};
}

test('small messages cost no packet in the other direction, and no window ever runs out', async t => {
  const {reader, writer, answers} = await pair(t);
  updateSparingly(reader);
  let received = 0;
  reader.addEventListener('message', ({data}) => (received += data.byteLength));
  for (let message = 0; message < 1000; message += 1) {
    writer.send(new Uint8Array(100));
    await turn();
  }
  await until('all is there', () => received === 100_000);
  t.true(answers() <= 2, `${answers()} answers`);

  const bytes = 8 * 1024 * 1024;
  for (let sent = 0; sent < bytes; sent += 64 * 1024) {
    if (writer.send(new Uint8Array(64 * 1024))) continue;
    await new Promise(drained => writer.addEventListener('drain', drained, {once: true}));
  }
  await until('all is there', () => received === 100_000 + bytes);
});

test('a reader that pauses holds the writer back, and gets the rest when it reads on', async t => {
  const {reader, writer} = await pair(t);
  updateSparingly(reader);
  let received = 0;
  reader.addEventListener('message', ({data}) => (received += data.byteLength));
  await until('the stream is open', async () => {
    writer.send(new Uint8Array(1));
    return received > 0;
  });
  reader.pause();
  let sent = 0;
  while (writer.send(new Uint8Array(16 * 1024))) {
    sent += 16 * 1024;
    await turn();
    if (sent > 4 * 1024 * 1024) break;
  }
  t.true(sent <= 1024 * 1024, `${sent} bytes were sent to a reader that is paused`);
  reader.resume();
  await until('the rest comes', () => received > sent);
});
