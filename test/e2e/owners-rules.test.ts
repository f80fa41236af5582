import {randomUUID} from 'node:crypto';
import {chmod, writeFile} from 'node:fs/promises';
import {join} from 'node:path';
import test from 'ava';
import {chatText, counted} from '../support/chat.ts';
import {startDaemon} from '../support/daemon.ts';
import type {Daemon, DaemonOptions} from '../support/daemon.ts';
import {freezeEngines, loadOnly} from '../support/holders.ts';
import {modelFolder} from '../support/models.ts';
import {busyAt, engines, models, requests} from '../support/reports.ts';
import {roomyModels, roomyVariables} from '../support/roomy-models.ts';
import {scriptedEngine} from '../support/scripted-engine.ts';
import {until} from '../support/until.ts';

const count = 'tiny-count-F16';
const deep = 'tiny-deep-F16';

/** A node that owns models, and one with settings of its own through which clients ask for them. */
async function ownerAndEntry(
  t: Parameters<typeof startDaemon>[0],
  owner: DaemonOptions,
  entry: DaemonOptions,
): Promise<readonly [Daemon, Daemon]> {
  const mesh = `test-${randomUUID().slice(0, 8)}`;
  const [owning, asked] = await Promise.all([
    startDaemon(t, {name: 'owner', mesh, ...owner}),
    startDaemon(t, {name: 'entry', mesh, ...entry}),
  ]);
  const all = (await models(owning.url)).length;
  await until('the models are known', async () => (await models(asked.url)).length >= all && all > 0);
  return [owning, asked];
}

/** Engines that a node has itself. */
async function own({url}: Daemon) {
  return (await engines(url)).filter(({node}) => node === 'local');
}

/** Of a wall clock and a stopwatch; the first one takes far longer. */
const roundingMs = 50;

test.serial('S40: a request of another node waits for its turn like one that was asked here', async t => {
  const [owner, entry] = await ownerAndEntry(
    t,
    {models: [await modelFolder(t, `${deep}.gguf`)], variables: {HEARSAY_THREADS: '1', HEARSAY_SLOTS: '1'}},
    {variables: {HEARSAY_SLOTS: '4'}},
  );
  await loadOnly(entry, deep, owner);
  const wake = freezeEngines(t, owner); // until both are there
  const first = chatText(owner.url, {model: deep, max_tokens: 80, ignore_eos: true});
  await until('the first one runs', async () => (await busyAt(owner.url)) === 1);
  const second = chatText(entry.url, {model: deep, max_tokens: 5});
  await until('the other one has come', async () => (await requests(entry.url)).length === 1);
  const over: string[] = [];
  const both = Promise.all([first, second]).finally(() => over.push('both'));
  const most = {slots: 0, busy: 0};
  while (over.length === 0) {
    for (const {slots, busy} of await own(owner)) {
      most.slots = Math.max(most.slots, slots);
      most.busy = Math.max(most.busy, busy);
    }
    wake();
    await Promise.race([both, new Promise(resolve => void setTimeout(resolve, 50))]);
  }
  t.deepEqual(
    (await both).map(({text}) => text),
    [counted(80), counted(5)],
  );
  t.deepEqual(most, {slots: 1, busy: 1});

  // By the clock of the owner: here their ends may be read in either order.
  const ran = async (role: string) =>
    until('it has its end', async () =>
      (await requests(owner.url)).find(each => each.role === role && each.outcome === 'finished'),
    );
  const [here, hopped] = [await ran('entry'), await ran('worker')];
  const endMs = here.atMs + (here.totalMs ?? Infinity);
  const beginMs = hopped.atMs + (hopped.firstByteMs ?? 0);
  t.true(beginMs > endMs - roundingMs, `it began to answer ${endMs - beginMs} ms before the first one had ended`);
});

test.serial(
  'S41, R70, R90: a model that another node has asked for goes by the time of its owner, and comes back when asked for',
  async t => {
    const [owner, entry] = await ownerAndEntry(
      t,
      {
        models: [await modelFolder(t, `${count}.gguf`)],
        variables: {HEARSAY_KEEP_ALIVE: '1s', HEARSAY_KEEP_ALIVE_MAX: '2s'},
      },
      {variables: {HEARSAY_KEEP_ALIVE: '1h'}},
    );
    for (const keep of [{}, {keep_alive: '1h'}, {keep_alive: -1}]) {
      const answer = await chatText(entry.url, {model: count, max_tokens: 3, ...keep});
      t.like(answer, {status: 200, text: counted(3), done: true}, JSON.stringify(keep));
      await until('it is unloaded', async () => (await own(owner)).length === 0);
    }
    await until('the entry node has heard of it', async () => (await engines(entry.url)).length === 0);
    t.like(await chatText(entry.url, {model: count, max_tokens: 3}), {status: 200, text: counted(3)});
  },
);

test.serial('S42: what another node asks for makes room on its owner by the rules of the owner alone', async t => {
  const [owner, entry] = await ownerAndEntry(
    t,
    {models: [await roomyModels(t, 'a', 'b', 'c')], variables: {...roomyVariables, HEARSAY_MEMORY: '250MiB'}},
    {models: [await modelFolder(t, `${count}.gguf`)]},
  );
  await until('all are known', async () => (await models(entry.url)).length === 4);
  const ask = async (model: string) =>
    t.is((await chatText(entry.url, {model, max_tokens: 3})).text, counted(3), model);
  // Many times: what is used counts by the time that its load takes, and on a busy machine one takes longer by chance.
  for (const model of [count, 'a', 'a', 'a', 'a', 'a', 'a', 'b', 'c']) await ask(model);
  const loaded = async (daemon: Daemon) => (await own(daemon)).map(({name}) => name).toSorted();
  t.deepEqual(await loaded(owner), ['a', 'c'], 'what was used least has gone');
  t.deepEqual(await loaded(entry), [count]);
});

/** One prompt, with which the engine keeps its slot for a while before it says anything. */
const slowPrompt = (ms: number) => [{role: 'user', content: JSON.stringify({at: 'never', how: 'waits', ms})}];

test.serial(
  'R28: of twenty requests for one slot each is answered, though the last waits ten times a budget',
  async t => {
    const [, entry] = await ownerAndEntry(
      t,
      {
        ...scriptedEngine,
        models: [await modelFolder(t, `${count}.gguf`)],
        variables: {...scriptedEngine.variables, HEARSAY_SLOTS: '1'},
      },
      {variables: {HEARSAY_FIRST_BYTE_MIN: '1s'}},
    );
    const asked = Array.from({length: 20}, async () => chatText(entry.url, {model: count, messages: slowPrompt(500)}));
    t.deepEqual(
      (await Promise.all(asked)).map(({status, text, done}) => [status, text, done]),
      asked.map(() => [200, 'one two three ', true]),
    );
  },
);

/** Stands in for a llama-server that loads and then refuses whatever it is asked, at once. */
const refusing = `#!/usr/bin/env node
import {createServer} from 'node:http';
if (process.argv.includes('--version')) {
  console.error('version: 1 (refusing)');
  process.exit();
}
const server = createServer((request, answer) => {
  const isAsked = request.method === 'POST';
  answer.writeHead(isAsked ? 503 : 200, {'content-type': 'application/json'});
  answer.end(isAsked ? '{"error":{"code":503,"message":"no","type":"unavailable_error"}}' : '{}');
});
server.listen(Number(process.argv[process.argv.indexOf('--port') + 1]), '127.0.0.1');
process.stdin.resume().on('end', () => process.exit());
`;

test.serial('R30: a node whose engine refuses at once does not look free for it: the other one is asked', async t => {
  const folder = await modelFolder(t, `${count}.gguf`);
  const engine = join(folder, 'refusing.mjs');
  await writeFile(engine, refusing);
  await chmod(engine, 0o700);
  const mesh = `test-${randomUUID().slice(0, 8)}`;
  const common = {...scriptedEngine, mesh, models: [folder]};
  const [entry] = await Promise.all([
    startDaemon(t, {name: 'entry', mesh}),
    startDaemon(t, {...common, name: 'good'}),
    startDaemon(t, {...common, name: 'bad', engine}),
  ]);
  await until('both are known', async () => (await models(entry.url))[0]?.nodes.length === 2);
  for (const node of ['good', 'bad']) t.is((await entry.cli('load', count, '--node', node)).code, 0);
  await until('both are loaded', async () => (await engines(entry.url)).length === 2);

  const nodes: (string | null)[] = [];
  let inVain = 0;
  const line = async (): Promise<void> => {
    while (nodes.length < 100) {
      nodes.push('');
      const index = nodes.length - 1;
      // Each begins anew, so that none goes where its beginning has been read.
      const messages = [{role: 'system', content: `conversation ${index}`}, ...slowPrompt(200)];
      const {status, headers} = await chatText(entry.url, {model: count, messages, stream: false});
      if (status === 200) nodes[index] = headers.get('x-hearsay-node');
      inVain += Number(headers.get('x-hearsay-attempts')) - 1;
    }
  };
  await Promise.all([line(), line()]);
  t.deepEqual(new Set(nodes), new Set(['good']));
  t.log(`${inVain} in vain`);
  t.true(inVain <= 10, `${inVain} in vain`);
});
