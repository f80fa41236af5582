import {createServer} from 'node:http';
import {once} from 'node:events';
import {newRequestId} from '@hearsay/core';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {DaemonClient} from './daemon-client.ts';
import {showRequests} from './journal-commands.ts';
import {systemClock, systemRandom} from './system.ts';

/** A line as the admin API sends it: what is undefined is missing. */
const row = (change: number, outcome?: string) => ({
  id: newRequestId(systemRandom),
  role: 'entry',
  atMs: 0,
  outcome,
  asked: `model-${change}`,
  endpoint: '/v1/chat/completions',
  policy: 'auto',
  bodyBytes: 1,
  attempts: 1,
  change,
});

/** Answers with the lists in their order, and keeps what it was asked. */
async function daemonWith(t: ExecutionContext, ...lists: readonly (readonly object[])[]) {
  const asked: string[] = [];
  const server = createServer(({url = ''}, response) => {
    const requests = lists[asked.length] ?? [];
    asked.push(url);
    response.setHeader('content-type', 'application/json').end(JSON.stringify({requests}));
  });
  t.teardown(() => server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  return {asked, client: new DaemonClient(`http://127.0.0.1:${port}`)};
}

function output() {
  let text = '';
  const terminal = {out: (more: string) => void (text += more), error: () => undefined, isInteractive: false};
  return {terminal, text: () => text};
}

const stopped = new Error('the test has seen enough');

/** Time that ends after so many pauses. */
function clockOf(pauses: number) {
  let left = pauses;
  return {
    ...systemClock,
    async sleep() {
      if (left === 0) throw stopped;
      left -= 1;
    },
  };
}

test('requests lists the newest last; -f goes on with each that ends, once, and asks only for what is new', async t => {
  const {asked, client} = await daemonWith(
    t,
    [row(4), row(3, 'finished')],
    [row(5), row(6, 'failed')],
    [row(7, 'cancelled')],
  );
  const {terminal, text} = output();
  const following = showRequests({client, terminal, json: false}, {follow: true, count: 2}, clockOf(2));
  t.is(await t.throwsAsync(following), stopped);
  t.deepEqual(asked, ['/hearsay/v1/requests?limit=2', '/hearsay/v1/requests?after=4', '/hearsay/v1/requests?after=6']);
  const models = [...text().matchAll(/model-\d/gu)].map(([name]) => name);
  t.deepEqual(models, ['model-3', 'model-4', 'model-6', 'model-7']);
  t.is(text().match(/REQUEST/gu)?.length, 1);
});

test('requests -f --json is one object a line', async t => {
  const {client} = await daemonWith(t, [row(1, 'finished')], [row(2, 'refused')]);
  const {terminal, text} = output();
  await t.throwsAsync(showRequests({client, terminal, json: true}, {follow: true, count: undefined}, clockOf(1)));
  const lines = text().trimEnd().split('\n');
  t.deepEqual(
    lines.map(line => {
      const parsed: {outcome: string} = JSON.parse(line);
      return parsed.outcome;
    }),
    ['finished', 'refused'],
  );
});
