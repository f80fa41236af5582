import {writeFile} from 'node:fs/promises';
import {join} from 'node:path';
import test from 'ava';
import {chatText} from '../support/chat.ts';
import {startDaemon} from '../support/daemon.ts';
import {startForeignServer} from '../support/foreign-server.ts';
import {modelFolder, tinyModel} from '../support/models.ts';
import {aliveNames, models, status} from '../support/reports.ts';
import {until} from '../support/until.ts';

test.serial('a node without a model asks the external engine of another node, which shows it as loaded', async t => {
  const server = await startForeignServer(t, {
    model: tinyModel('tiny-count-F16.gguf'),
    alias: 'their-model',
    apiKey: 'k3y',
  });
  const config = join(await modelFolder(t), 'config.toml');
  await writeFile(config, `[engines.external]\nname = "vllm"\nurl = "${server.url}/v1"\nkey_env = "VLLM_KEY"\n`);
  const mesh = `external-${Math.random().toString(36).slice(2)}`;
  const one = await startDaemon(t, {name: 'one', mesh, flags: ['--config', config], variables: {VLLM_KEY: 'k3y'}});
  const port = /\/tcp\/(\d+)/u.exec((await status(one.url)).meshAddresses.join())?.[1] ?? '';
  const two = await startDaemon(t, {name: 'two', mesh, peers: [`127.0.0.1:${port}`]});
  await until('both alive', async () => (await aliveNames(two.url)).length === 2, 30_000);
  await until('the model', async () => (await models(two.url)).some(({status: state}) => state === 'loaded'), 30_000);

  const answer = await chatText(two.url, {model: 'their-model', max_tokens: 3});
  t.like(answer, {text: ' 1 2 3', done: true, status: 200});
  t.is(answer.headers.get('x-hearsay-node'), 'one');
  t.regex((await one.cli('ps')).stdout, /their-model .* external .*Forever/u);
  const stop = await two.cli('stop', 'their-model');
  t.is(stop.code, 1);
  t.regex(stop.stderr, /one: an external engine is not started by hearsay/u);
  t.is((await fetch(`${server.url}/health`)).status, 200);
});

test.serial('a key that is named and missing, and a URL that is none, end the start with what to do', async t => {
  const config = join(await modelFolder(t), 'config.toml');
  await writeFile(config, '[[engines.external]]\nname = "vllm"\nurl = "http://127.0.0.1:9"\nkey_env = "NO_SUCH_KEY"\n');
  await t.throwsAsync(startDaemon(t, {flags: ['--config', config]}), {
    message: /needs its key in the variable NO_SUCH_KEY/u,
  });
  const variables = {HEARSAY_EXTERNAL_ENGINES: 'vllm=localhost'};
  await t.throwsAsync(startDaemon(t, {variables}), {message: /engines\.external in the environment must be NAME=URL/u});
});
