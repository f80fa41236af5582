import {randomUUID} from 'node:crypto';
import {once} from 'node:events';
import {writeFile} from 'node:fs/promises';
import {createServer} from 'node:net';
import {join} from 'node:path';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {counted} from '../support/chat.ts';
import {startDaemon} from '../support/daemon.ts';
import type {Daemon, DaemonOptions} from '../support/daemon.ts';
import {startHostedServer} from '../support/hosted-server.ts';
import {modelFolder} from '../support/models.ts';
import {models} from '../support/reports.ts';
import {until} from '../support/until.ts';

const variables = {HEARSAY_THREADS: '1', ACME_KEY: 's3cret'};
const model = 'tiny-count-F16';

/** A daemon that has a hosted service for every model, and itself none. */
async function entryWith(t: ExecutionContext, url: string, options: DaemonOptions = {}): Promise<Daemon> {
  const config = join(await modelFolder(t), 'config.toml');
  const service = `url = "${url}"\nkey_env = "ACME_KEY"\nmodels = {"tiny*" = "acme-small"}\ntokens_per_month = 100000\n`;
  await writeFile(config, `[hosted.acme]\n${service}`);
  return startDaemon(t, {name: 'entry', variables, flags: ['--config', config], ...options});
}

async function ask(url: string, policy: string | undefined, body: object = {}): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: policy === undefined ? {} : {'x-hearsay-policy': policy},
    body: JSON.stringify({model, messages: [{role: 'user', content: '1'}], max_tokens: 3, ...body}),
  });
}

test.serial(
  'law 7, S84, S93: local-required never leaves, though every node is gone and a service is there',
  async t => {
    let connections = 0;
    const listener = createServer(socket => {
      connections += 1;
      socket.destroy();
    }).listen(0, '127.0.0.1');
    await once(listener, 'listening');
    t.teardown(() => listener.close());
    const address = listener.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const mesh = `test-${randomUUID().slice(0, 8)}`;
    const [entry, holder] = await Promise.all([
      entryWith(t, `http://127.0.0.1:${port}/v1`, {mesh}),
      startDaemon(t, {name: 'holder', mesh, variables, models: [await modelFolder(t, `${model}.gguf`)]}),
    ]);
    await until('the holder is known', async () => (await models(entry.url)).some(({name}) => name === model));
    t.is((await ask(entry.url, undefined)).status, 200);

    holder.kill('SIGKILL');
    await holder.exited;
    const policies = [undefined, 'auto', 'local-required', 'prefer=holder', 'pin=holder;local-preferred'];
    for (const policy of [...policies, 'local-preferred;exclude=acme']) {
      const answer = await ask(entry.url, policy);
      t.true([404, 502, 503].includes(answer.status), `${policy}: ${answer.status}`);
      t.regex(await answer.text(), /"message":"[^"]{10,}/u);
    }
    await until('it is forgotten', async () => (await models(entry.url)).length === 0, 60_000);
    for (const policy of policies) t.true([404, 503].includes((await ask(entry.url, policy)).status));
    t.is(connections, 0);

    await ask(entry.url, 'local-preferred');
    t.true(connections > 0, 'the same listener would have seen it');
  },
);

test.serial('S85: local-preferred stays in the mesh while it can, then leaves, and says so', async t => {
  const server = await startHostedServer(t);
  const mesh = `test-${randomUUID().slice(0, 8)}`;
  const [entry, holder] = await Promise.all([
    entryWith(t, server.url, {mesh}),
    startDaemon(t, {name: 'holder', mesh, variables, models: [await modelFolder(t, `${model}.gguf`)]}),
  ]);
  await until('the holder is known', async () => (await models(entry.url)).some(({name}) => name === model));
  const inside = await ask(entry.url, 'local-preferred');
  t.deepEqual([inside.status, inside.headers.get('x-hearsay-node')], [200, 'holder']);
  t.is(server.connections(), 0);

  holder.kill('SIGKILL');
  await holder.exited;
  const outside = await ask(entry.url, 'local-preferred', {stream: true});
  t.is(outside.status, 200);
  t.regex(await outside.text(), /" 1".*" 2".*" 3".*data: \[DONE\]\n\n$/su);
  t.is(outside.headers.get('x-hearsay-node'), 'acme (hosted)');
  t.is(outside.headers.get('x-hearsay-policy'), 'auto;local-preferred');
  t.is(server.calls[0]?.headers.authorization, 'Bearer s3cret');
  const why = await entry.cli('why', outside.headers.get('x-hearsay-request') ?? '');
  t.regex(why.stdout, /finished on acme \(hosted\)[^]*its policy lets it leave, so that acme \(hosted\) is asked/u);
  t.regex((await entry.cli('requests')).stdout, /acme \(hosted\)/u);

  const object = await ask(entry.url, 'local-preferred');
  const text: unknown = await object.json();
  t.like(text, {usage: {completion_tokens: 3}});
  t.is(object.headers.get('x-hearsay-node'), 'acme (hosted)');
});

test.serial('S85: a model that nobody ever had may go to the service too, by the policy of the config', async t => {
  const server = await startHostedServer(t);
  const entry = await entryWith(t, server.url, {variables: {...variables, HEARSAY_POLICY: 'local-preferred'}});
  const chat = {model: 'tiny-other', messages: [{role: 'user', content: '1'}]};
  const known = await ask(entry.url, undefined, chat);
  t.deepEqual([known.status, known.headers.get('x-hearsay-node')], [200, 'acme (hosted)']);
  t.regex(await known.text(), new RegExp(`"content":"${counted(3)}"`, 'u'));
  t.regex((await entry.cli('route', 'tiny-other')).stdout, /would leave the mesh for acme \(hosted\): no node could/u);
  const unmapped = await ask(entry.url, undefined, {model: 'qwen'});
  t.is(unmapped.status, 404);
  const before = server.calls.length;
  t.is((await ask(entry.url, 'local-required', chat)).status, 404);
  t.is(server.calls.length, before);
});

test.serial('a service without its key, limit or a safe address ends the start with what to do', async t => {
  await t.throwsAsync(entryWith(t, 'https://127.0.0.1:9/v1', {variables: {HEARSAY_THREADS: '1'}}), {
    message: /the hosted service acme needs its key in the variable ACME_KEY/u,
  });
  await t.throwsAsync(entryWith(t, 'http://api.example.com/v1'), {
    message: /hosted\.acme\.url in .* must be an https/u,
  });
});
