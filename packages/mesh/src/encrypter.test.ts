import {generateKeyPair} from '@libp2p/crypto/keys';
import type {ConnectionEncrypter, Logger, MessageStream} from '@libp2p/interface';
import {peerIdFromPrivateKey} from '@libp2p/peer-id';
import {multiaddrConnectionPair} from '@libp2p/utils';
import test from 'ava';
import {encode as encodeFrames} from 'it-length-prefixed';
import {until} from '../../../test/support/until.ts';
import {encrypter, inOnePiece} from './encrypter.ts';

test('a message of several parts is written as one', t => {
  const written: Uint8Array[] = [];
  const connection: Pick<MessageStream, 'send'> = {
    send: data => {
      written.push(...(data instanceof Uint8Array ? [data] : data));
      return true;
    },
  };
  const parts = encodeFrames.single(Buffer.from('frame'));
  t.is([...parts].length, 2);
  t.true(inOnePiece(connection).send(parts));
  inOnePiece(connection).send(Buffer.from('alone'));
  t.deepEqual(
    written.map(each => Buffer.from(each).toString()),
    ['\u0005frame', 'alone'],
  );
});

/** One end of noise, with a key of its own. */
async function makeEnd(): Promise<ConnectionEncrypter> {
  const privateKey = await generateKeyPair('Ed25519');
  const ignore = (): void => {};
  const newScope = (): Logger => Object.assign(ignore, {error: ignore, trace: ignore, enabled: false, newScope});
  const never = (): never => {
    throw new Error('not asked for here');
  };
  return encrypter()({
    privateKey,
    peerId: peerIdFromPrivateKey(privateKey),
    logger: {forComponent: newScope},
    upgrader: {
      upgradeOutbound: never,
      upgradeInbound: never,
      createInboundAbortSignal: never,
      getStreamMuxers: () => new Map(),
      getConnectionEncrypters: () => new Map(),
    },
  });
}

test('messages that come one by one, together or in pieces are read without an error on the way', async t => {
  const [near, far] = multiaddrConnectionPair();
  const [one, other] = [await makeEnd(), await makeEnd()];
  const [{connection: ours}, {connection: theirs}] = await Promise.all([
    one.secureOutbound(near),
    other.secureInbound(far),
  ]);
  const decoder: unknown = Reflect.get(theirs, 'decoder');
  if (typeof decoder !== 'object' || decoder === null) return t.fail('noise has another decoder now');
  const decode: unknown = Reflect.get(decoder, 'lengthDecoder');
  if (typeof decode !== 'function') return t.fail('its decoder has another way to read lengths now');
  let errors = 0;
  let looks = 0;
  Reflect.set(decoder, 'lengthDecoder', (bytes: unknown): unknown => {
    looks += 1;
    try {
      return Reflect.apply(decode, decoder, [bytes]);
    } catch (error) {
      errors += 1;
      throw error;
    }
  });
  let heard = '';
  theirs.addEventListener('message', ({data}) => (heard += Buffer.from(data.subarray()).toString()));
  ours.send(Buffer.from('one '));
  await until('the first is there', () => heard === 'one ');

  // The last byte of one message travels with the first of the next, and the very last byte alone.
  const send = near.send.bind(near);
  let bytes = Buffer.alloc(0);
  near.send = data => {
    bytes = Buffer.concat([bytes, Buffer.from(data.subarray())]);
    return true;
  };
  ours.send(Buffer.from('two '));
  const border = bytes.length;
  ours.send(Buffer.from('three'));
  for (const [from, to] of [
    [0, 1],
    [1, border - 1],
    [border - 1, border + 1],
    [border + 1, bytes.length - 1],
    [bytes.length - 1, bytes.length],
  ]) {
    send(bytes.subarray(from, to));
  }
  await until('all is there', () => heard === 'one two three');
  t.true(looks > 3);
  t.is(errors, 0);
});
