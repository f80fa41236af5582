import {setImmediate as turn} from 'node:timers/promises';
import type {MessageStream} from '@libp2p/interface';
import test from 'ava';
import {sendTogether} from './send-together.ts';

interface Wire {
  readonly connection: Pick<MessageStream, 'send'> & {writableNeedsDrain: boolean};
  /** What was really sent, message by message. */
  readonly messages: string[];
  readonly flush: () => void;
}

function wire(send?: () => boolean): Wire {
  const messages: string[] = [];
  const connection: Wire['connection'] = {
    writableNeedsDrain: false,
    send: data => {
      messages.push(Buffer.from(data.subarray()).toString());
      return send?.() ?? true;
    },
  };
  return {connection, messages, flush: sendTogether(connection)};
}

test('what is sent in one turn goes out as one message, in order', async t => {
  const {connection, messages} = wire();
  for (const word of ['one ', 'two ', 'three']) t.true(connection.send(Buffer.from(word)));
  t.deepEqual(messages, []);
  await turn();
  connection.send(Buffer.from('later'));
  await turn();
  t.deepEqual(messages, ['one two three', 'later']);
});

test('much is sent without waiting, and the writer hears when it is too much', t => {
  const {connection, messages} = wire(() => false);
  t.true(connection.send(Buffer.alloc(40_000)));
  t.false(connection.send(Buffer.alloc(40_000)));
  t.is(messages[0]?.length, 80_000);
  connection.writableNeedsDrain = true;
  t.false(connection.send(Buffer.from('more')));
});

test('what waits goes out before the end, and a connection that has ended is no error', async t => {
  const {connection, messages, flush} = wire();
  connection.send(Buffer.from('last words'));
  flush();
  t.deepEqual(messages, ['last words']);

  const ended = wire(() => {
    throw new Error('cannot write to a stream that is closed');
  });
  ended.connection.send(Buffer.from('too late'));
  await turn();
  t.deepEqual(ended.messages, ['too late']);
});
