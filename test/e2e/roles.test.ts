import {randomUUID} from 'node:crypto';
import test from 'ava';
import {chatText, counted} from '../support/chat.ts';
import {startDaemon} from '../support/daemon.ts';
import {modelFolder} from '../support/models.ts';
import {aliveNames, models} from '../support/reports.ts';
import {until} from '../support/until.ts';

/** Of the model, on whichever node the daemon at this URL chooses. */
async function ask(url: string, model: string): ReturnType<typeof chatText> {
  return chatText(url, {model, max_tokens: 3});
}

test.serial('a node that only uses the mesh runs its own models for itself alone, and those of others', async t => {
  const mesh = `test-${randomUUID().slice(0, 8)}`;
  const [user, other] = await Promise.all([
    startDaemon(t, {
      name: 'user',
      mesh,
      models: [await modelFolder(t, 'tiny-count-F16.gguf')],
      flags: ['--role', 'use'],
    }),
    startDaemon(t, {name: 'other', mesh, models: [await modelFolder(t, 'tiny-other-Q4_0.gguf')]}),
  ]);
  await until('they meet', async () => (await aliveNames(other.url)).length === 2);
  await until('the user knows the model', async () => (await models(user.url)).length === 2);

  const abroad = await ask(user.url, 'tiny-other-Q4_0');
  t.is(abroad.text, counted(3));
  t.is(abroad.headers.get('x-hearsay-node'), 'other');
  const own = await ask(user.url, 'tiny-count-F16');
  t.is(own.text, counted(3));
  t.is(own.headers.get('x-hearsay-node'), 'user');

  t.deepEqual(
    (await models(other.url)).map(({name}) => name),
    ['tiny-other-Q4_0'],
  );
  t.is((await ask(other.url, 'tiny-count-F16')).status, 404);
});

test.serial('a node that only serves runs what others ask, and asks nobody itself', async t => {
  const mesh = `test-${randomUUID().slice(0, 8)}`;
  const [server, other] = await Promise.all([
    startDaemon(t, {
      name: 'server',
      mesh,
      models: [await modelFolder(t, 'tiny-count-F16.gguf')],
      flags: ['--role', 'serve'],
    }),
    startDaemon(t, {name: 'other', mesh, models: [await modelFolder(t, 'tiny-other-Q4_0.gguf')]}),
  ]);
  await until('they meet', async () => (await aliveNames(server.url)).length === 2);
  await until('the other knows the model', async () => (await models(other.url)).length === 2);

  const served = await ask(other.url, 'tiny-count-F16');
  t.is(served.text, counted(3));
  t.is(served.headers.get('x-hearsay-node'), 'server');
  t.is((await ask(server.url, 'tiny-count-F16')).text, counted(3), 'its own models it runs for itself too');

  await until('the server has heard of the model', async () => (await models(server.url)).length === 2);
  const body = JSON.stringify({model: 'tiny-other-Q4_0', messages: []});
  const refused = await fetch(`${server.url}/v1/chat/completions`, {method: 'POST', body});
  t.is(refused.status, 503);
  t.regex(await refused.text(), /other: this node only serves, and asks no other/u);
  t.regex((await server.cli('status')).stdout, /^mesh: .* \(runs what they ask, and asks none of them\)$/mu);
});
