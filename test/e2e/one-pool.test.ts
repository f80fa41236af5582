import {randomUUID} from 'node:crypto';
import {mkdtemp, rm} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {chatText, counted} from '../support/chat.ts';
import {startDaemon} from '../support/daemon.ts';
import type {Daemon} from '../support/daemon.ts';
import {modelFolder} from '../support/models.ts';
import {engines, models, requests} from '../support/reports.ts';
import {roomyModels, roomyVariables} from '../support/roomy-models.ts';
import {shared} from '../support/shared.ts';
import {until} from '../support/until.ts';

const count = 'tiny-count-F16';

const meshName = (): string => `test-${randomUUID().slice(0, 8)}`;

/** Waits until each of these nodes knows of a model on so many nodes. */
async function allKnow(daemons: readonly Daemon[], model: string, holders: number): Promise<void> {
  for (const {url} of daemons) {
    await until(`${model} is known on ${holders} nodes`, async () =>
      (await models(url)).some(({name, nodes}) => name === model && nodes.length === holders),
    );
  }
}

/** Asks there; the name of the node that has answered. */
async function nodeFor(t: ExecutionContext, {url}: Daemon, model: string): Promise<string | null> {
  const {status: code, text, headers} = await chatText(url, {model, max_tokens: 3});
  t.deepEqual([code, text], [200, counted(3)]);
  return headers.get('x-hearsay-node');
}

/** What the journal of a node has, once it has the ends of all. */
async function journalOf({url}: Daemon): Promise<Awaited<ReturnType<typeof requests>>> {
  return until('all have ended', async () => {
    const all = await requests(url);
    return all.every(({outcome}) => outcome !== undefined) ? all : undefined;
  });
}

async function answerOf(url: string): Promise<string> {
  return (await fetch(url)).text();
}

test.serial(
  'S1, S7: of three unlike machines the one that has a model loaded answers, else the one with the most room',
  async t => {
    const mesh = meshName();
    const folder = await roomyModels(t, 'a', 'b');
    // Of a single slot others may still hear that it is busy.
    const slots = {HEARSAY_SLOTS: '4', HEARSAY_CONTEXT: '1024'};
    const memory = {unified: '400MiB', spark: '1GiB', box: '60MiB'};
    const daemons = await Promise.all(
      Object.entries(memory).map(async ([name, HEARSAY_MEMORY]) =>
        startDaemon(t, {name, mesh, models: [folder], variables: {...roomyVariables, ...slots, HEARSAY_MEMORY}}),
      ),
    );
    const [unified, , box] = daemons;
    if (!unified || !box) return t.fail();
    for (const model of ['a', 'b']) await allKnow(daemons, model, 3);
    await until(
      'the memory of all is known',
      async () => !(await answerOf(`${box.url}/hearsay/v1/nodes`)).includes('"memoryTotalBytes":0'),
    );

    t.is((await unified.cli('load', 'b', '--node', 'unified')).code, 0);
    await until('all have heard of it', async () =>
      (await Promise.all(daemons.map(async ({url}) => engines(url)))).every(({length}) => length === 1),
    );
    for (const daemon of daemons) t.is(await nodeFor(t, daemon, 'b'), 'unified', `loaded there, asked ${daemon.name}`);
    for (const daemon of [box, ...daemons]) {
      t.is(await nodeFor(t, daemon, 'a'), 'spark', `most room there, asked ${daemon.name}`);
    }
  },
);

/** What a daemon is started within so that the system lets it write into one folder only. */
function writesOnlyTo(folder: string): readonly string[] {
  const flags = ['--permission', '--allow-fs-read=*', `--allow-fs-write=${folder}`, '--allow-child-process'];
  const all = [...flags, '--allow-worker', '--allow-addons', '--max-semi-space-size=8'];
  return ['sh', '-c', `node=$1; shift; exec "$node" ${all.map(flag => `'${flag}'`).join(' ')} "$@"`, 'sh'];
}

test.serial(
  'S6: nodes that may write nowhere but into their own folders are one pool, and each alone is a whole one',
  async t => {
    const mesh = meshName();
    const daemons: Daemon[] = [];
    const files = [count, 'tiny-other-Q4_0'];
    for (const [index, file] of files.entries()) {
      const folder = await mkdtemp(join(tmpdir(), 'hearsay-alone-'));
      t.teardown(async () => rm(folder, {recursive: true, force: true, maxRetries: 3}));
      daemons.push(
        await startDaemon(t, {
          name: `n${index}`,
          mesh,
          models: [await modelFolder(t, `${file}.gguf`)],
          dataFolder: join(folder, 'data'),
          within: writesOnlyTo(folder),
        }),
      );
    }
    for (const file of files) await allKnow(daemons, file, 1);
    for (const daemon of daemons) {
      for (const [index, file] of files.entries()) t.is(await nodeFor(t, daemon, file), `n${index}`);
    }
    const [first, second] = daemons;
    if (!first || !second) return t.fail();
    t.is(await first.stop(), 0);
    t.is(await nodeFor(t, second, 'tiny-other-Q4_0'), 'n1');
    t.notRegex(first.stderr() + second.stderr(), /ERR_ACCESS_DENIED|"level":"error"/u);
  },
);

/** Two nodes with the model and one without. Each test finds it loaded on `one` or not at all; no other has run it. */
const trio = shared('three nodes', async ends => {
  const mesh = meshName();
  const folder = await modelFolder(ends, `${count}.gguf`);
  const start = async (name: string, ...folders: readonly string[]): Promise<Daemon> =>
    startDaemon(ends, {name, mesh, models: folders});
  const daemons = await Promise.all([start('one', folder), start('two', folder), start('three')]);
  await allKnow(daemons, count, 2);
  return daemons;
});

test.serial('S11: a model that is loaded here is served here, and nobody else hears of the request', async t => {
  const [here, other] = trio();
  t.is((await here.cli('load', count, '--node', 'one')).code, 0);
  for (let times = 0; times < 3; times += 1) t.is(await nodeFor(t, here, count), 'one');
  t.deepEqual(
    (await journalOf(here)).map(({outcome, attempts}) => [outcome, attempts]),
    Array.from({length: 3}, () => ['finished', 1]),
  );
  t.deepEqual(await journalOf(other), [], 'it was asked nothing');
  t.deepEqual(await engines(other.url).then(all => all.filter(({node}) => node === 'local')), []);
});

test.serial(
  'S12: a request for a model that runs elsewhere is offered there once, and no other peer is asked',
  async t => {
    const [runs, other, entry] = trio();
    await allKnow([entry], count, 2);
    t.is((await entry.cli('load', count, '--node', 'one')).code, 0);
    await until('the load is known', async () => (await engines(entry.url)).length === 1);
    for (let times = 0; times < 3; times += 1) t.is(await nodeFor(t, entry, count), 'one');
    t.deepEqual(
      (await journalOf(runs)).filter(({role}) => role === 'worker').map(({outcome, attempts}) => [outcome, attempts]),
      Array.from({length: 3}, () => ['finished', 1]),
    );
    t.deepEqual(await journalOf(other), []);
  },
);

test.serial(
  'S43, S56: a model on two nodes is one model in every list, and one line a holder in ps, also where neither is',
  async t => {
    const daemons = trio();
    const [one] = daemons;
    for (const node of ['one', 'two']) t.is((await one.cli('load', count, '--node', node)).code, 0);

    for (const daemon of daemons) {
      const {url, name} = daemon;
      const isReady = async (): Promise<boolean> =>
        (await engines(url)).filter(({state}) => state === 'ready').length === 2;
      await until('both loads are known', isReady);
      const {data}: {data: {id: string}[]} = JSON.parse(await answerOf(`${url}/v1/models`));
      t.deepEqual(
        data.map(({id}) => id),
        [count],
        name,
      );
      const tags: {models: {name: string; nodes: string[]}[]} = JSON.parse(await answerOf(`${url}/api/tags`));
      t.deepEqual(
        tags.models.map(each => [each.name, each.nodes.toSorted()]),
        [[`${count}:latest`, ['one', 'two']]],
      );
      const running: {models: {nodes: string[]}[]} = JSON.parse(await answerOf(`${url}/api/ps`));
      t.deepEqual(
        running.models.map(each => each.nodes.toSorted()),
        [['one', 'two']],
        name,
      );
      t.deepEqual((await engines(url)).map(({nodeName}) => nodeName).toSorted(), ['one', 'two'], name);
      const {stdout} = await daemon.cli('ps');
      t.is(
        stdout
          .trimEnd()
          .split('\n')
          .filter(line => line.startsWith(count)).length,
        2,
        stdout,
      );
    }
  },
);

test.serial(
  'S13, S19: of a peer everybody can read, as JSON too, what it has loaded and stored and how much memory it has',
  async t => {
    const mesh = meshName();
    const [asker, peer] = await Promise.all([
      startDaemon(t, {name: 'asker', mesh}),
      startDaemon(t, {
        name: 'peer',
        mesh,
        models: [await modelFolder(t, `${count}.gguf`, 'tiny-other-Q4_0.gguf')],
        variables: {HEARSAY_MEMORY: '512MiB'},
      }),
    ]);
    await allKnow([asker], 'tiny-other-Q4_0', 1);
    t.is((await peer.cli('load', count)).code, 0);
    await until('the load is known', async () => (await engines(asker.url))[0]?.state === 'ready');

    const {code, stdout} = await asker.cli('nodes', '--json');
    t.is(code, 0);
    const {nodes}: {nodes: Record<string, unknown>[]} = JSON.parse(stdout);
    t.like(
      nodes.find(({name}) => name === 'peer'),
      {local: false, state: 'alive', models: 2, loaded: [count], memoryTotalBytes: 512 * 1024 * 1024},
    );
    t.deepEqual(
      (await models(asker.url)).map(({name, nodes: holders}) => [name, holders.map(({name: node}) => node)]),
      [
        [count, ['peer']],
        ['tiny-other-Q4_0', ['peer']],
      ],
    );
    const [known] = await engines(asker.url);
    const [own] = await engines(peer.url);
    t.like(known, {name: count, nodeName: 'peer', state: 'ready', digest: own?.digest, context: own?.context});
  },
);
