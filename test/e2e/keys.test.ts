import {randomUUID} from 'node:crypto';
import {readFile, stat} from 'node:fs/promises';
import {join} from 'node:path';
import OpenAI from 'openai';
import test from 'ava';
import {runCli, startDaemon} from '../support/daemon.ts';
import {modelFolder} from '../support/models.ts';
import {models} from '../support/reports.ts';
import {until} from '../support/until.ts';

const variables = {HEARSAY_THREADS: '1'};
const files = ['tiny-count-F16.gguf', 'tiny-other-Q4_0.gguf'];

/** What Ollama clients may change for everybody. */
const ollamaChanges = [
  ['POST', '/api/pull'],
  ['POST', '/api/create'],
  ['POST', '/api/copy'],
  ['DELETE', '/api/delete'],
  ['POST', `/api/blobs/sha256:${'a'.repeat(64)}`],
] as const;

async function ask(url: string, key: string, body: object, headers: Readonly<Record<string, string>> = {}) {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: {authorization: `Bearer ${key}`, ...headers},
    body: JSON.stringify({max_tokens: 2, messages: [{role: 'user', content: 'count'}], ...body}),
  });
  const text = await response.text();
  return {status: response.status, text, node: response.headers.get('x-hearsay-node')};
}

test.serial('S67, S69: a key opens what it was made for, and says which right is missing', async t => {
  const mesh = `test-${randomUUID().slice(0, 8)}`;
  const folder = await modelFolder(t, ...files);
  const [one, two] = await Promise.all([
    startDaemon(t, {name: 'one', mesh, models: [folder], variables}),
    startDaemon(t, {name: 'two', mesh, models: [folder], variables}),
  ]);
  await until('both hold both', async () => {
    const held = await models(one.url);
    return held.length === 2 && held.every(({nodes, hashed}) => nodes.length === 2 && hashed === undefined);
  });
  const rights = ['--models', 'tiny-count-*', '--nodes', 'two', '--policies', 'auto,prefer'];
  const made = await one.cli('key', 'create', 'notes', ...rights);
  t.is(made.code, 0, made.stderr);
  const secret = made.stdout.trim();
  t.regex((await one.cli('key', 'ls')).stdout, /^notes +\S+ +tiny-count-\* +all +two +auto,prefer +- +- +-$/mu);
  const kept = join(one.dataFolder, 'keys.json');
  t.false((await readFile(kept, 'utf8')).includes(secret));
  t.is((await stat(kept)).mode % 0o1000, 0o600);

  const client = new OpenAI({baseURL: `${one.url}/v1`, apiKey: secret, maxRetries: 0});
  const messages = [{role: 'user', content: 'count'}] as const;
  const answer = await client.chat.completions
    .create({model: 'tiny-count-F16', max_tokens: 2, messages: [...messages]})
    .withResponse();
  t.is(answer.response.headers.get('x-hearsay-node'), 'two', 'the node that its key allows');
  t.regex(
    (await one.cli('why', answer.response.headers.get('x-hearsay-request') ?? '')).stdout,
    /the application notes/u,
  );
  t.regex((await two.cli('requests')).stdout, /here, for a peer/u);

  const seen = async (path: string): Promise<string> =>
    (await fetch(`${one.url}${path}`, {headers: {authorization: `Bearer ${secret}`}})).text();
  for (const path of ['/v1/models', '/api/tags']) {
    t.true((await seen(path)).includes('tiny-count-F16'), path);
    t.false((await seen(path)).includes('tiny-other-Q4_0'), path);
    t.regex(await seen(path), /"nodes":\["two"\]/u, 'of the nodes that have it, only the one that is for the key');
  }
  t.regex(await seen('/v1/models/tiny-other-Q4_0'), /model_not_found/u);
  t.true((await (await fetch(`${one.url}/v1/models`)).text()).includes('tiny-other-Q4_0'), 'without a key all of them');

  const refused: readonly (readonly [object, Readonly<Record<string, string>>, RegExp])[] = [
    [{model: 'tiny-other-Q4_0'}, {}, /lacks a right that this request needs: the model tiny-other-Q4_0/u],
    [{model: 'tiny-count-F16'}, {'x-hearsay-policy': 'pin=two'}, /lacks a right .*: the policy pin/u],
    [{model: 'tiny-count-F16'}, {'x-hearsay-policy': 'auto;exclude=two'}, /lacks a right .*: the node one/u],
  ];
  for (const [body, headers, message] of refused) {
    const {status, text} = await ask(one.url, secret, body, headers);
    t.is(status, 403, text);
    t.regex(text, message);
  }
  t.regex((await one.cli('requests')).stdout, /refused +the key notes lacks a right/u);
  const admin = await fetch(`${one.url}/hearsay/v1/keys`, {headers: {authorization: `Bearer ${secret}`}});
  t.is(admin.status, 403);
  t.regex(await admin.text(), /needs: admin/u);
  for (const [method, path] of ollamaChanges) {
    const changed = await fetch(one.url + path, {method, headers: {authorization: `Bearer ${secret}`}, body: '{}'});
    t.is(changed.status, 403, path);
    t.deepEqual(await changed.json(), {error: 'this key lacks a right that this request needs: admin'}, path);
  }
  const list = await fetch(`${one.url}/api/tags`, {headers: {authorization: `Bearer ${secret}`}});
  t.is(list.status, 200, 'looking is no change');

  t.is((await one.cli('key', 'revoke', 'notes')).code, 0);
  t.is((await ask(one.url, secret, {model: 'tiny-count-F16'})).status, 401);
  t.is((await ask(one.url, 'any', {model: 'tiny-count-F16'})).status, 200, 'this machine needs none');
});

test.serial(
  'a listener for other machines starts as soon as there is a key, and a required key is required',
  async t => {
    const first = await startDaemon(t);
    const refused = await t.throwsAsync(startDaemon(t, {gateway: '0.0.0.0:0'}));
    t.regex(refused.message, /hearsay key create/u);
    const secret = (await first.cli('key', 'create', 'ops', '--admin')).stdout.trim();
    await first.stop();
    const options = {gateway: '0.0.0.0:0', dataFolder: first.dataFolder, variables: {HEARSAY_REQUIRE_KEY: 'true'}};
    const open = await startDaemon(t, options);
    const none = await runCli(['status', '--host', open.url], {...process.env, HEARSAY_KEY: ''});
    t.is(none.code, 2);
    t.regex(none.stderr, /wants a key: set HEARSAY_KEY/u);
    t.is((await runCli(['status', '--host', open.url], {...process.env, HEARSAY_KEY: secret})).code, 0);
  },
);
