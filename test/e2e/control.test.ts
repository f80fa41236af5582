import test from 'ava';
import {chat, deltaOf} from '../support/chat.ts';
import {startDaemon} from '../support/daemon.ts';
import type {Daemon} from '../support/daemon.ts';
import {modelFolder} from '../support/models.ts';
import {childrenWith} from '../support/processes.ts';
import {aliveNames, engines, models as modelsAt} from '../support/reports.ts';
import {shared} from '../support/shared.ts';
import {timed, until} from '../support/until.ts';

const count = 'tiny-count-F16';
const deep = 'tiny-deep-F16';

/** Two nodes that know each other and each other's models; `one` lacks the deep one. */
const sharedMesh = `control-${Math.random().toString(36).slice(2)}`;
const nodes = shared('two nodes', async ends => {
  const variables = {HEARSAY_KEEP_ALIVE: '2m'};
  const files = {one: [`${count}.gguf`], two: [`${count}.gguf`, `${deep}.gguf`]};
  const one = await startDaemon(ends, {
    name: 'one',
    mesh: sharedMesh,
    models: [await modelFolder(ends, ...files.one)],
    variables,
  });
  const address = /127\.0\.0\.1\/tcp\/(\d+)/u.exec(
    JSON.stringify(await (await fetch(`${one.url}/hearsay/v1/status`)).json()),
  );
  const peers = [`127.0.0.1:${address?.[1] ?? ''}`];
  const models = [await modelFolder(ends, ...files.two)];
  const two = await startDaemon(ends, {name: 'two', mesh: sharedMesh, peers, models, variables});
  for (const {url} of [one, two]) {
    await until('both nodes alive', async () => (await aliveNames(url)).length === 2, 30_000);
    await until('all models known', async () => holdersOf(await modelsAt(url)) === 'one two, two', 30_000);
  }
  return [one, two] as const;
});

/** Names of the nodes that have each model. */
function holdersOf(models: Awaited<ReturnType<typeof modelsAt>>): string {
  const names = models.map(model =>
    model.nodes
      .map(({name}) => name)
      .toSorted()
      .join(' '),
  );
  return names.toSorted().join(', ');
}

/** The two nodes, with nothing loaded by an earlier test. */
async function unloaded(): Promise<readonly [Daemon, Daemon]> {
  const both = nodes();
  for (const {url} of both) {
    for (const {name} of await engines(url)) {
      await fetch(`${url}/hearsay/v1/stop`, {method: 'POST', body: JSON.stringify({model: name})});
    }
    await until('nothing is loaded', async () => (await engines(url)).length === 0);
  }
  return both;
}

const llama = (daemon: Daemon): readonly number[] => childrenWith('llama-server', [daemon.pid]);

// The first one, while no engine has run.
test.serial('the log of an engine can be read from another node, also after its end, and names no folder', async t => {
  const [one, two] = await unloaded();
  t.regex((await one.cli('logs', deep)).stderr, /no engine of tiny-deep-F16 has run on two lately/u);
  t.is((await one.cli('load', deep)).code, 0);
  t.is((await one.cli('stop', deep)).code, 0);
  const logs = await one.cli('logs', deep);
  t.is(logs.code, 0, logs.stderr);
  t.regex(logs.stdout, /^hearsay: starting\n/u);
  t.regex(logs.stdout, /llama_server: model loaded/u);
  t.regex(logs.stdout, /hearsay: stopped\n$/u);
  t.is(logs.stdout.match(/hearsay: starting/gu)?.length, 1, 'no page comes twice');
  t.false(logs.stdout.includes(two.dataFolder.replace(/data$/u, '')));
  t.notRegex(logs.stdout, /hearsay-models-/u);
});

test.serial('S57: stop unloads a model wherever the mesh has put it, and prints nothing', async t => {
  const [one, two] = await unloaded();
  t.is((await one.cli('load', count, '--node', 'two')).code, 0);
  t.is((await one.cli('load', count, '--node', 'one')).code, 0);
  t.is((await one.cli('load', deep)).code, 0);
  t.is(llama(one).length, 1);
  t.is(llama(two).length, 2);

  const stop = await one.cli('stop', count);
  t.deepEqual(stop, {code: 0, stdout: '', stderr: ''});
  t.is(llama(one).length, 0);
  t.is(llama(two).length, 1, 'another model stays');
  await until('the entry node to hear of it', async () => (await engines(one.url)).length === 1);

  const again = await one.cli('stop', count);
  t.is(again.code, 3);
  t.regex(again.stderr, /no model tiny-count-F16 is loaded on any node/u);
});

test.serial(
  'S43: stop --node acts on that node alone, and a node that nobody knows is named with those that are',
  async t => {
    const [one, two] = await unloaded();
    for (const node of ['one', 'two']) t.is((await two.cli('load', count, '--node', node)).code, 0);
    t.is((await two.cli('stop', count, '--node', 'one')).code, 0);
    t.is(llama(one).length, 0);
    t.is(llama(two).length, 1);
    const unknown = await two.cli('stop', count, '--node', 'three');
    t.is(unknown.code, 3);
    t.regex(unknown.stderr, /no node is called three; those that are known: (one|two), (one|two)/u);
  },
);

test.serial('load takes context, slots and keep, and show tells of them on the other node', async t => {
  const [one, two] = await unloaded();
  const load = await one.cli('load', deep, '--context', '512', '--slots', '3', '--keep');
  t.is(load.code, 0, load.stderr);
  t.regex(load.stderr, /tiny-deep-F16 is loaded on two, with 3 slots of 512 tokens/u);
  t.regex(
    (await one.cli('show', deep)).stdout,
    /node: +two: ready\n +3 slots of 512 tokens, 0 busy, 0 waiting\n +loaded /u,
  );
  t.notRegex((await one.cli('show', deep)).stdout, /unloaded/u);
  t.regex((await two.cli('ps')).stdout, /tiny-deep-F16 .* 512 .*Forever/u);

  t.is((await one.cli('load', deep, '--slots', '1')).code, 0);
  t.regex((await one.cli('show', deep)).stdout, /1 slot of 512 tokens/u);
  t.is(llama(two).length, 1);

  const missing = await two.cli('load', deep, '--node', 'one');
  t.is(missing.code, 3);
  t.regex(missing.stderr, /node one does not have tiny-deep-F16/u);
});

test.serial(
  'load --copies puts a model on as many nodes, the best ones, and says how many fit when they are too many',
  async t => {
    const [one, two] = await unloaded();
    const both = await one.cli('load', count, '--copies', '2');
    t.is(both.code, 0, both.stderr);
    t.regex(both.stderr, /is loaded on this node/u);
    t.regex(both.stderr, /is loaded on two/u);
    t.deepEqual([llama(one).length, llama(two).length], [1, 1]);
    const many = await one.cli('load', deep, '--copies', '2');
    t.is(many.code, 5, many.stderr);
    t.regex(many.stderr, /one copy of tiny-deep-F16 can be loaded, not 2: on two/u);
    t.is(llama(two).length, 1, 'nothing was begun');
  },
);

test.serial('a node that takes no wishes from others is neither loaded nor stopped by them', async t => {
  const [one] = await unloaded();
  const variables = {HEARSAY_REMOTE_CONTROL: 'false'};
  const three = await startDaemon(t, {
    name: 'three',
    mesh: sharedMesh,
    models: [await modelFolder(t, `${deep}.gguf`)],
    variables,
  });
  await until('it is known', async () => holdersOf(await modelsAt(one.url)) === 'one two, three two', 30_000);
  const load = await one.cli('load', deep, '--node', 'three');
  t.is(load.code, 1);
  t.regex(load.stderr, /three: this node takes no wishes from others/u);
  t.is(llama(three).length, 0);
  t.is((await three.cli('load', deep, '--node', 'three')).code, 0, 'its own owner still can');
});

test.serial(
  'R97, R109: a model that is stopped while it loads answers "stopping" at once, and does not come up',
  async t => {
    // A llama-server that is never ready: what it would do for ten minutes with a large model.
    const engine = await modelFolder(t);
    const {chmod, writeFile} = await import('node:fs/promises');
    await writeFile(
      `${engine}/slow`,
      '#!/bin/sh\n[ "$1" = --version ] && echo "version: 1" && exit 0\nexec sleep 600\n',
    );
    await chmod(`${engine}/slow`, 0o700);
    const folder = await modelFolder(t, `${count}.gguf`);
    const daemon = await startDaemon(t, {name: 'slow', engine: `${engine}/slow`, models: [folder]});
    const loading = daemon.cli('load', count);
    await until('the load', async () => (await engines(daemon.url))[0]?.state === 'loading', 30_000);

    const times: number[] = [];
    for (let round = 0; round < 5; round += 1) times.push((await timed(async () => engines(daemon.url))).ms);
    // The quickest: whatever else runs on the machine can only slow one down.
    t.true(Math.min(...times) < 1_000, `ps took ${times.join(', ')} ms`);
    t.regex((await daemon.cli('ps')).stdout, /loading, about \d+ seconds left/u);

    const stop = await daemon.cli('stop', count);
    t.is(stop.code, 0);
    t.is(stop.stderr, 'stopping on this node\n');
    t.is(stop.stdout, '');
    const load = await loading;
    t.is(load.code, 1);
    t.regex(load.stderr, /stopped/u);
    await until('the end', async () => (await engines(daemon.url)).length === 0);
  },
);

test.serial(
  'S35: models of engine.preload are loaded at the start, on that node only, and come back after a crash',
  async t => {
    const folder = await modelFolder(t, `${count}.gguf`, `${deep}.gguf`);
    const mesh = `preload-${Math.random().toString(36).slice(2)}`;
    const variables = {HEARSAY_PRELOAD: `${count},tiny-deep-F61`, HEARSAY_KEEP_ALIVE: '0'};
    const daemon = await startDaemon(t, {name: 'pre', mesh, models: [folder], variables});
    const other = await startDaemon(t, {name: 'other', mesh, models: [folder]});
    await until('the preload', async () => (await engines(daemon.url))[0]?.state === 'ready', 30_000);
    await until('the other node to hear of it', async () => (await engines(other.url)).length === 1, 30_000);
    t.deepEqual(llama(other), []);
    t.regex(daemon.stderr(), /"model":"tiny-deep-F61","close":"tiny-deep-F16","msg":"a model to preload is not there/u);
    const [pid = 0] = llama(daemon);
    t.is(llama(daemon).length, 1);
    const stream = await chat(daemon.url, {model: count, max_tokens: 3});
    let text = '';
    for await (const event of stream.events) text += deltaOf(event);
    t.is(text, ' 1 2 3');
    t.deepEqual(llama(daemon), [pid], 'it stays, whatever the keep-alive');
    process.kill(pid, 'SIGKILL');
    await until('a new one', async () => llama(daemon).some(anew => anew !== pid), 30_000);
    t.is((await daemon.cli('stop', count)).code, 0);
    t.deepEqual(llama(daemon), []);
  },
);
