import test from 'ava';
import {chat, chatText, collect, counted, deltaOf} from '../support/chat.ts';
import {startDaemon} from '../support/daemon.ts';
import type {Daemon} from '../support/daemon.ts';
import {freezeEngines} from '../support/holders.ts';
import {modelFolder} from '../support/models.ts';
import {roomyModels, roomyVariables} from '../support/roomy-models.ts';
import {engines, models} from '../support/reports.ts';
import {until} from '../support/until.ts';

/** Room for two of the models, not for three. */
const budget = {...roomyVariables, HEARSAY_MEMORY: '250MiB'};

async function startTight(t: Parameters<typeof startDaemon>[0], ...names: readonly string[]): Promise<Daemon> {
  const daemon = await startDaemon(t, {models: [await roomyModels(t, ...names)], variables: budget});
  await until('all models are listed', async () => (await models(daemon.url)).length === 3);
  return daemon;
}

async function ask({url}: Daemon, model: string): Promise<number> {
  const {status, text, done} = await chatText(url, {model, max_tokens: 3});
  if (status === 200 && (text !== counted(3) || !done)) throw new Error(`${model} said ${text}`);
  return status;
}

/** Names of the models that have become ready so far, in order, as the log tells. */
function loads(daemon: Daemon): string {
  return [...daemon.stderr().matchAll(/^.*an engine is ready.*$/gmu)]
    .map(([line]) => /"model":"([\w-]+)"/u.exec(line)?.[1] ?? '?')
    .join(' ');
}

async function loaded({url}: Daemon): Promise<string> {
  return (await engines(url))
    .filter(({state}) => state === 'ready')
    .map(({name}) => name)
    .toSorted()
    .join('');
}

test.serial('C43: of three models two fit: any order of requests works, and what is used least goes', async t => {
  const daemon = await startTight(t, 'a', 'b', 'c');
  // Often: it counts by the time that a load takes, and on a busy machine one takes longer by chance.
  for (const model of 'aaaaaaaab') t.is(await ask(daemon, model), 200);
  t.is(await ask(daemon, 'c'), 200);
  t.is(await loaded(daemon), 'ac', 'b was used once, a eight times');
  t.is(loads(daemon), 'a b c');

  for (const model of 'bcabacb') t.is(await ask(daemon, model), 200, model);
  t.is((await loaded(daemon)).length, 2);
  const {stdout} = await daemon.cli('nodes');
  t.regex(stdout, /of 262\.1 MB free/u, 'the budget is what others are told');
});

test.serial('R99: alternate requests do not thrash: once both are loaded, nothing is loaded again', async t => {
  const daemon = await startTight(t, 'a', 'b', 'c');
  for (let round = 0; round < 6; round += 1) for (const model of 'ab') t.is(await ask(daemon, model), 200);
  t.is(loads(daemon), 'a b');
  t.is(await ask(daemon, 'c'), 200);
  const both = await loaded(daemon);
  t.regex(both, /^[ab]c$/u);
  const before = loads(daemon);
  for (let round = 0; round < 6; round += 1) for (const model of both) t.is(await ask(daemon, model), 200);
  t.is(loads(daemon), before);
});

test.serial('R93, R94: a model that streams never goes, whatever is asked meanwhile', async t => {
  const daemon = await startTight(t, 'slow', 'b', 'c');
  const leave = new AbortController();
  const {events} = await chat(daemon.url, {model: 'slow', max_tokens: 4000, ignore_eos: true}, leave.signal);
  let text = deltaOf((await events.next()).value);
  for (const model of 'bcb') t.is(await ask(daemon, model), 200);
  t.is((await engines(daemon.url)).find(({name}) => name === 'slow')?.busy, 1, 'it streams still');
  while (text.length < 200) text += deltaOf((await events.next()).value);
  leave.abort();
  t.true(counted(400).startsWith(text.slice(0, 200)));
  t.is(loads(daemon), 'slow b c b');
});

test.serial('when all memory is in use a request waits for it, disturbs nobody, and then runs', async t => {
  const daemon = await startTight(t, 'aslow', 'bslow', 'c');
  const streams = await Promise.all(
    ['aslow', 'bslow'].map(async model => chat(daemon.url, {model, max_tokens: 300, ignore_eos: true})),
  );
  const wake = freezeEngines(t, daemon); // both stream until all has been looked at
  const waiting = ask(daemon, 'c');
  await until('it is shown as loading', async () =>
    (await engines(daemon.url)).some(({name, state}) => name === 'c' && state === 'loading'),
  );
  t.notRegex(loads(daemon), /c/u);
  wake();
  const ended = await Promise.all(streams.map(async ({events}) => collect(events)));
  t.deepEqual(
    ended.map(({text, done}) => [text, done]),
    ended.map(() => [counted(300), true]),
  );
  t.is(await waiting, 200);
  t.regex(loads(daemon), / c$/u);
});

test.serial('S61: a model that fits no node is answered with what is missing where, and with rpc-server', async t => {
  const mesh = `test-memory-${process.pid}`;
  const variables = {...roomyVariables, HEARSAY_MEMORY: '60MiB'};
  const folder = await roomyModels(t, 'a');
  const [first, second] = await Promise.all(
    ['small', 'smaller'].map(async name => startDaemon(t, {name, mesh, models: [folder], variables})),
  );
  if (!first || !second) return t.fail();
  await until('both are known as holders', async () => (await models(first.url)).some(({nodes}) => nodes.length === 2));
  const response = await fetch(`${first.url}/v1/chat/completions`, {
    method: 'POST',
    headers: {'content-type': 'application/json'},
    body: JSON.stringify({model: 'a', messages: [{role: 'user', content: 'x'}]}),
  });
  const {error}: {error: {message: string}} = await response.json();
  t.is(response.status, 503);
  t.is(response.headers.get('x-should-retry'), 'false');
  t.regex(error.message, /^a fits on no node\. .*rpc-server/u);
  for (const name of ['small', 'smaller'])
    t.regex(error.message, new RegExp(`${name}: \\d+\\.\\d MB are missing`, 'u'));
  t.is(loads(first) + loads(second), '');
});

test.serial(
  'R99, S61: of two models to keep where one fits, the other is refused, once, and holds up nobody',
  async t => {
    const variables = {...roomyVariables, HEARSAY_MEMORY: '150MiB', HEARSAY_PRELOAD: 'a,b'};
    const folder = await roomyModels(t, 'a', 'b');
    const small = await modelFolder(t, 'tiny-count-F16.gguf');
    const daemon = await startDaemon(t, {models: [folder, small], variables});
    await until('one is loaded', async () => (await loaded(daemon)).length === 1, 30_000);
    const one = await loaded(daemon);
    const other = one === 'a' ? 'b' : 'a';
    const refused = await fetch(`${daemon.url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({model: other, messages: [{role: 'user', content: 'x'}]}),
    });
    t.is(refused.status, 503);
    t.regex(await refused.text(), /models that are kept loaded leave only .* stop one of them/u);
    t.is(await ask(daemon, 'tiny-count-F16'), 200);
    t.is(await ask(daemon, one), 200);
    t.is(daemon.stderr().split('cannot be preloaded').length, 2);
    t.regex(loads(daemon), /^[ab] tiny-count-F16$/u);
  },
);
