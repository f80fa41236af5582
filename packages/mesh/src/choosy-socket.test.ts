import {createSocket} from 'node:dgram';
import {once} from 'node:events';
import test from 'ava';
import {until} from '../../../test/support/until.ts';
import {choosySocket} from './choosy-socket.ts';

test('only packets that are wanted, by what they say and whence they come, reach whoever listens', async t => {
  const senders = new Set<string>();
  const choosy = choosySocket((message, from) => {
    senders.add(from);
    return message.includes('ours');
  });
  const heard: string[] = [];
  choosy.on('message', message => heard.push(String(message)));
  choosy.bind(0, '127.0.0.1');
  await once(choosy, 'listening');
  const sender = createSocket('udp4');
  t.teardown(() => [choosy, sender].map(socket => socket.close()));
  for (const text of ['a printer', 'ours 1', 'a television', 'ours 2']) {
    sender.send(text, choosy.address().port, '127.0.0.1');
  }
  await until('both are there', () => heard.length === 2);
  t.deepEqual(heard.toSorted(), ['ours 1', 'ours 2']);
  t.deepEqual([...senders], ['127.0.0.1']);
});
