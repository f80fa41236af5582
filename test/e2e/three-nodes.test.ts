import {randomUUID} from 'node:crypto';
import test from 'ava';
import {chatText, counted} from '../support/chat.ts';
import {startDaemon} from '../support/daemon.ts';
import type {Daemon} from '../support/daemon.ts';
import {modelFolder} from '../support/models.ts';
import {childrenWith} from '../support/processes.ts';
import {aliveNames, engines, models, requests, status} from '../support/reports.ts';
import {shared} from '../support/shared.ts';
import {timed, until} from '../support/until.ts';

const files = ['tiny-count-F16', 'tiny-other-Q4_0', 'tiny-count-Q8_0'];

/** Three daemons, one model each, told of nothing but the mesh name. */
const mesh = `test-${randomUUID().slice(0, 8)}`;
const three = shared('three nodes', async ends =>
  Promise.all(files.map(async (file, index) => startNode(ends, index, await modelFolder(ends, `${file}.gguf`)))),
);

async function startNode(t: Parameters<typeof startDaemon>[0], index: number, folder: string): Promise<Daemon> {
  return startDaemon(t, {name: `n${index}`, mesh, models: [folder]});
}

test.serial('S2, S54, S55, S99: three nodes that were told of nothing are one endpoint', async t => {
  const daemons = three();

  for (const {url} of daemons) {
    await until('everybody knows everybody', async () => (await aliveNames(url)).length === 3, 3000);
    await until('every model is listed', async () => (await models(url)).length === 3, 2000);
    const response = await fetch(`${url}/v1/models`);
    const listed: {data: {id: string}[]} = await response.json();
    t.deepEqual(listed.data.map(({id}) => id).toSorted(), files.toSorted());
  }

  for (const {url, name: entry} of daemons) {
    for (const [index, model] of files.entries()) {
      const {status: code, headers, text, done} = await chatText(url, {model, max_tokens: 20});
      t.is(code, 200, `${model} at ${entry}`);
      t.is(text, counted(20));
      t.true(done);
      t.is(headers.get('x-hearsay-node'), `n${index}`);
      t.is(headers.get('x-hearsay-attempts'), '1');
    }
  }

  const [first] = daemons;
  if (!first) return t.fail();
  await until('the engines of all are gossiped', async () => (await engines(first.url)).length === 3, 4000);
  const {stdout} = await first.cli('ps');
  const [header, ...rows] = stdout.trimEnd().split('\n');
  t.regex(header ?? '', /^NAME +ID +SIZE +PROCESSOR +CONTEXT +STARTED +NODE +UNTIL$/u);
  t.is(rows.length, 3);
  t.regex(rows.find(row => row.startsWith('tiny-count-F16')) ?? '', / local +\d+ minutes from now$/u);
  t.regex(rows.find(row => row.startsWith('tiny-other-Q4_0')) ?? '', /llama-server +\d+ .* \S+:\d+ +\d+ minutes/u);
});

test.serial(
  'S33: twelve streams through a node without the model all run where it is loaded, on one engine',
  async t => {
    const daemons = three();
    const [entry, holder] = daemons;
    if (!entry || !holder) return t.fail();
    const [model = ''] = files.slice(1);
    await until('the entry node knows the model', async () => (await models(entry.url)).length === 3, 4000);
    const asked = Array.from({length: 12}, async () => chatText(entry.url, {model, max_tokens: 100}));
    const answers = await Promise.all(asked);
    t.deepEqual(
      answers.map(({status: code, text, done}) => [code, text, done]),
      answers.map(() => [200, counted(100), true]),
    );
    // Not by the headers: one that waited long has none.
    const ran = (await requests(entry.url)).slice(0, answers.length);
    t.deepEqual(new Set(ran.map(({asked: name, nodeName}) => `${name} on ${nodeName}`)), new Set([`${model} on n1`]));
    const parents = daemons.map(({pid}) => pid);
    t.is(childrenWith(`--alias ${model} `, parents).length, 1);
  },
);

test.serial('S17, S75: a node that is stopped leaves the lists at once, and its model is a clear 404', async t => {
  const daemons = three();
  const [first, , last] = daemons;
  if (!first || !last) return t.fail();
  await until('all know all', async () => (await aliveNames(first.url)).length === 3);
  await until('the model is listed', async () => (await models(first.url)).length === 3);
  await until('the node has settled', async () => (await status(first.url)).uptimeSeconds > 3.5);
  t.is(await last.stop(), 0);
  await until('it is gone', async () => (await aliveNames(first.url)).length === 2, 1000);
  const times: number[] = [];
  for (let round = 0; round < 5; round += 1) {
    const {value, ms} = await timed(async () => chatText(first.url, {model: 'tiny-count-Q8_0'}));
    t.is(value.status, 404);
    times.push(ms);
  }
  // The quickest: whatever else runs on the machine can only slow one down.
  t.true(Math.min(...times) < 500, `${times.join(', ')} ms`);
});

test.serial('S5: whichever nodes are killed, the others keep serving, down to the last', async t => {
  const [first, second] = three();
  if (!first || !second) return t.fail();
  // The third one has been stopped by the test before this one.
  const third = await startNode(t, 2, await modelFolder(t, 'tiny-count-Q8_0.gguf'));
  for (const {url} of [second, third]) await until('it knows all', async () => (await models(url)).length === 3);
  first.kill('SIGKILL');
  for (const {url} of [second, third]) {
    for (const model of ['tiny-other-Q4_0', 'tiny-count-Q8_0']) {
      t.is((await chatText(url, {model, max_tokens: 5})).text, counted(5));
    }
  }
  second.kill('SIGKILL');
  t.is((await chatText(third.url, {model: 'tiny-count-Q8_0', max_tokens: 5})).text, counted(5), 'alone too');
});
