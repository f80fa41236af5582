import test from 'ava';
import {chatText, counted} from '../support/chat.ts';
import {startDaemon} from '../support/daemon.ts';
import type {Daemon} from '../support/daemon.ts';
import {sharedHolders} from '../support/holders.ts';
import {modelFolder} from '../support/models.ts';
import {aliveNames, engines, models, requests} from '../support/reports.ts';
import {timed, until} from '../support/until.ts';

const [count, other, third] = ['tiny-count-F16', 'tiny-other-Q4_0', 'tiny-count-Q8_0'];

/** An entry node and two that have the model. */
const {mesh, take, end} = sharedHolders(count, {}, {variables: {HEARSAY_FIRST_BYTE_MIN: '3s'}});

/** A list that waited for peers would wait for them as long; one that does not needs milliseconds. */
const listMsMax = 3000;

const lists = [
  '/v1/models',
  '/api/tags',
  '/api/ps',
  ...['nodes', 'models', 'engines'].map(name => `/hearsay/v1/${name}`),
];

/** Stops a daemon in its tracks: its connections stay open, and it says nothing more. */
function freeze(t: Parameters<typeof startDaemon>[0], ...daemons: readonly Daemon[]): () => void {
  for (const {pid} of daemons) process.kill(pid, 'SIGSTOP');
  const wake = (): void => daemons.forEach(daemon => daemon.kill('SIGCONT'));
  t.teardown(wake);
  return wake;
}

test.serial(
  'S15: a peer that says nothing is left out of a decision without an error, and is chosen again when it speaks',
  async t => {
    const [entry, best, second] = await take(2);
    if (!best || !second) return t.fail();
    t.is((await entry.cli('load', count, '--node', best.name)).code, 0);
    const ask = async (policy = 'auto') => {
      const response = await fetch(`${entry.url}/v1/chat/completions`, {
        method: 'POST',
        headers: {'content-type': 'application/json', 'x-hearsay-policy': policy},
        body: JSON.stringify({model: count, max_tokens: 3, messages: [{role: 'user', content: 'count'}]}),
      });
      return {code: response.status, node: response.headers.get('x-hearsay-node'), text: await response.text()};
    };
    await until('the load is known', async () => (await engines(entry.url)).some(({state}) => state === 'ready'));
    t.like(await ask(), {code: 200, node: best.name});

    const wake = freeze(t, best);
    const answer = await ask();
    t.is(answer.code, 200, answer.text);
    // Not by the header: on a slow machine it leaves before another node is found.
    t.like((await requests(entry.url))[0], {nodeName: second.name, outcome: 'finished'}, answer.text);
    wake();
    await until('it is chosen again', async () => (await ask(`pin=${best.name}`)).code === 200);
    t.is((await entry.cli('stop', count, '--node', second.name)).code, 0);
    await until('it is chosen without being named', async () => (await ask()).node === best.name, 30_000);
  },
);

test.serial('R43: once a killed node is out, no request is offered to it any more', async t => {
  const [entry, gone, rest] = await take(2);
  if (!gone || !rest) return t.fail();
  t.is((await entry.cli('load', count, '--node', gone.name)).code, 0);
  await until('the load is known', async () => (await engines(entry.url)).some(({nodeName}) => nodeName === gone.name));
  end(gone, 'SIGKILL');
  await until('it is out', async () => (await aliveNames(entry.url)).length === 2, 9000);
  for (let times = 0; times < 10; times += 1) {
    const {status, headers} = await chatText(entry.url, {model: count, max_tokens: 3, stream: false});
    t.deepEqual([status, headers.get('x-hearsay-node'), headers.get('x-hearsay-attempts')], [200, rest.name, '1']);
  }
});

test.serial(
  'S14, S58, R34: with two silent peers every list is there at once, and soon without them and what only they have',
  async t => {
    const [entry, well] = await take(1);
    const folder = await modelFolder(t, `${other}.gguf`);
    const [silent, mute] = await Promise.all(
      ['silent', 'mute'].map(async name => startDaemon(t, {name, mesh: mesh(), models: [folder]})),
    );
    if (!well || !silent || !mute) return t.fail();
    await until(
      'all know all',
      async () =>
        (await aliveNames(entry.url)).length === 4 &&
        (await models(entry.url)).map(({name, nodes}) => `${name} ${nodes.length}`).join() === `${count} 1,${other} 2`,
    );
    for (const [model, node] of [
      [count, well.name],
      [other, 'mute'],
    ] as const) {
      t.is((await entry.cli('load', model, '--node', node)).code, 0);
    }
    await until('both loads are known', async () => (await engines(entry.url)).length === 2);

    freeze(t, silent, mute);
    const listed = new RegExp(`${well.name}|${count}`, 'u');
    const listAll = async (): Promise<readonly string[]> =>
      Promise.all(
        lists.map(async path => {
          const {value, ms} = await timed(async () => (await fetch(entry.url + path)).text());
          t.true(ms < listMsMax, `${path}: ${ms} ms`);
          return value;
        }),
      );
    for (const text of await listAll()) t.regex(text, listed);
    await until('they are out', async () => (await listAll()).every(text => !text.includes(other)), 15_000);
    t.deepEqual(await aliveNames(entry.url), ['entry', well.name]);
    for (const text of await listAll()) t.regex(text, listed);
    t.is((await chatText(entry.url, {model: count, max_tokens: 3})).text, counted(3));
  },
);

test.serial('S16: nothing is remembered against a node: as soon as it is up the next request runs there', async t => {
  const [entry] = await take(0);
  await until('nobody else is there', async () => (await aliveNames(entry.url)).length === 1);
  const holding = {name: 'holder', mesh: mesh(), models: [await modelFolder(t, `${third}.gguf`)]};
  const ask = async () => chatText(entry.url, {model: third, max_tokens: 3});
  t.is((await ask()).status, 404);
  let holder = await startDaemon(t, holding);
  for (const round of [1, 2]) {
    await until('it is listed', async () => (await models(entry.url)).length === 1);
    t.like(await ask(), {status: 200, text: counted(3)}, `round ${round}`);
    holder.kill('SIGKILL');
    await holder.exited;
    t.is((await ask()).text, '', 'nobody else has it');
    await until('it is out', async () => (await aliveNames(entry.url)).length === 1);
    holder = await startDaemon(t, {...holding, dataFolder: holder.dataFolder});
  }
  await until('it is listed', async () => (await models(entry.url)).length === 1);
  t.is((await ask()).status, 200);
});
