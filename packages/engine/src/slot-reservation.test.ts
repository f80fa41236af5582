import {once} from 'node:events';
import {createServer} from 'node:http';
import type {ServerResponse} from 'node:http';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {until} from '../../../test/support/until.ts';
import {LlamaClient} from './llama-client.ts';
import {SlotReservation} from './slot-reservation.ts';

const call = {endpoint: '/v1/chat/completions', contentType: undefined, body: new Uint8Array()} as const;

test('a slot is given back whether its answer was read, is there unread, or is still to come', async t => {
  const answers: ServerResponse[] = [];
  const client = await clientOf(t, response => {
    answers.push(response);
    response.write('data: one\n\n');
  });
  for (const how of ['read', 'unread', 'to come']) {
    const given: boolean[] = [];
    const giveBack = async (_: SlotReservation, wasCut: boolean): Promise<void> => void given.push(wasCut);
    const reservation = new SlotReservation({granted: Promise.resolve()}, {ready: async () => client, giveBack});
    const response = await reservation.run(call, new AbortController().signal);
    const chunks = response.body[Symbol.asyncIterator]();
    await chunks.next();
    if (how !== 'to come') {
      answers.at(-1)?.end('data: [DONE]\n\n');
      await until('the rest is here', () => !reservation.isRunning);
    }
    if (how === 'read') while ((await chunks.next()).done !== true);
    void reservation[Symbol.asyncDispose]();
    await until('it is given back', () => given.length > 0, 2000);
    t.deepEqual(given, [how === 'to come'], how);
  }
});

async function clientOf(t: ExecutionContext, answer: (response: ServerResponse) => void): Promise<LlamaClient> {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(200, {'content-type': 'text/event-stream'});
    answer(response);
  });
  server.keepAliveTimeout = 600_000; // it is not the engine that ends the wait
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const explain = async (): Promise<never> => Promise.reject(new Error('cut'));
  const client = new LlamaClient({port, apiKey: undefined, explain});
  t.teardown(() => {
    client.destroy();
    server.closeAllConnections();
    server.close();
  });
  return client;
}
