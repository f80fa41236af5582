import {setImmediate as turn} from 'node:timers/promises';
import type {Stream} from '@libp2p/interface';
import {multiaddrConnectionPair} from '@libp2p/utils';
import test from 'ava';
import {realEnvironment} from '../../../test/support/environment.ts';
import {until} from '../../../test/support/until.ts';
import {multiplexer} from './multiplexer.ts';

test('small messages cost no packet in the other direction, whoever opened the stream and whatever reads it', async t => {
  const [near, far] = multiaddrConnectionPair();
  const create = multiplexer({}, realEnvironment().clock);
  const [ours, theirs] = [create().createStreamMuxer(near), create().createStreamMuxer(far)];
  t.teardown(() => [ours, theirs].map(each => each.abort(new Error('the test is over'))));
  const arrived = Promise.withResolvers<Stream>();
  theirs.addEventListener('stream', ({detail}) => arrived.resolve(detail));
  const opened = await ours.createStream();
  const [here, there] = [opened, await arrived.promise];
  let packets = 0;
  for (const end of [near, far]) end.addEventListener('message', () => (packets += 1));
  for (const [writer, reader] of [
    [here, there],
    [there, here],
  ] as const) {
    let received = 0;
    reader.addEventListener('message', ({data}) => (received += data.byteLength));
    for (let message = 0; message < 100; message += 1) {
      writer.send(new Uint8Array(100));
      await until('it is there', () => received === 100 * (message + 1));
      await turn();
    }
  }
  t.true(packets < 210, `${packets} packets for 200 messages`);
});
