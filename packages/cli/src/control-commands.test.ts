import {once} from 'node:events';
import {createServer} from 'node:http';
import {Fault} from '@hearsay/core';
import test from 'ava';
import {digest, node} from '../../../test/support/builders.ts';
import {manualClock} from '../../../test/support/manual-clock.ts';
import {loadModel} from './control-commands.ts';
import {DaemonClient} from './daemon-client.ts';

test('of several nodes that cannot load a model each is told, with its reason', async t => {
  const nodes = ['A', 'B'].map(name => ({
    id: node(name),
    name,
    local: false,
    digest: digest('a'),
    refused: `the disk of ${name} is away`,
  }));
  const server = createServer((_, response) => {
    response.setHeader('content-type', 'application/json').end(JSON.stringify({nodes}));
  });
  t.teardown(() => server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const client = new DaemonClient(`http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`);
  let told = '';
  const terminal = {out: () => undefined, error: (text: string) => void (told += text), isInteractive: false};
  const flags = {context: undefined, slots: undefined, keep: false, copies: 2};
  const loading = loadModel({model: 'm', node: undefined}, flags, {client, terminal, json: false}, manualClock());
  const error = await t.throwsAsync(loading, {instanceOf: Fault});
  const all = `${told}${error.message}`;
  t.true(all.includes('the disk of A is away') && all.includes('the disk of B is away'), all);
});
