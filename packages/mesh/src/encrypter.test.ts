import type {MessageStream} from '@libp2p/interface';
import test from 'ava';
import {encode as encodeFrames} from 'it-length-prefixed';
import {inOnePiece} from './encrypter.ts';

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
