import test from 'ava';
import {chat, chatText, collect, counted, deltaOf} from '../support/chat.ts';
import {startDaemon} from '../support/daemon.ts';
import type {Daemon} from '../support/daemon.ts';
import {freezeEngines, loadOnly, sharedHolders, workingOf} from '../support/holders.ts';
import {childrenWith} from '../support/processes.ts';
import {busyAt, models, requests} from '../support/reports.ts';
import {timed, until} from '../support/until.ts';

const deep = 'tiny-deep-F16';
/** A sleep ends no node, so that all tests have the same. */
const {mesh, take} = sharedHolders(deep);

/** Puts the machine of a daemon to sleep, engines and all; resolves with what wakes it up. */
function sleep(t: Parameters<typeof startDaemon>[0], daemon: Daemon): () => void {
  const pids = [daemon.pid, ...childrenWith('llama-server', [daemon.pid])];
  for (const pid of pids) process.kill(pid, 'SIGSTOP');
  let isAwake = false;
  const wake = (): void => {
    if (!isAwake) for (const pid of pids) process.kill(pid, 'SIGCONT');
    isAwake = true;
  };
  t.teardown(wake);
  return wake;
}

test.serial(
  'R102: a node falls asleep before output: another answers, and it drops the request when it wakes',
  async t => {
    const [entry, serving, other] = await take(2);
    if (!serving || !other) return t.fail();
    await loadOnly(entry, deep, serving);
    freezeEngines(t, serving); // asleep a moment before the rest of its machine, so that there is no output
    const answer = chatText(entry.url, {model: deep, max_tokens: 5, ignore_eos: true});
    await until('it works', async () => (await busyAt(serving.url)) === 1);
    const wake = sleep(t, serving);
    const {status, text, done} = await answer;
    t.deepEqual([status, text, done], [200, counted(5), true]);
    t.like((await requests(entry.url))[0], {nodeName: other.name, outcome: 'finished'});
    wake();
    await until('it has let go of the request', async () => (await busyAt(serving.url)) === 0, 60_000);
  },
);

test.serial('R102: a node falls asleep after output: a clean error, and nothing more when it wakes', async t => {
  const [entry, ...holders] = await take(2);
  const {events} = await chat(entry.url, {model: deep, max_tokens: 3000, ignore_eos: true});
  let text = deltaOf((await events.next()).value);
  while (text.length < 20) text += deltaOf((await events.next()).value);
  const serving = await until('somebody works on it', async () => workingOf(holders));
  const wake = sleep(t, serving);
  const rest = await collect(events);
  t.false(rest.done, 'no end mark after an error');
  t.regex(rest.error?.message ?? '', /broke off/u);
  t.true(counted(400).startsWith((text + rest.text).slice(0, 400)), 'nothing lost, doubled or repeated');
  wake();
  await until('it has let go of the request', async () => (await busyAt(serving.url)) === 0, 60_000);
});

test.serial('R112: the first request after a restart of the entry node finds the nodes that are ready', async t => {
  await take(2);
  const entry = await startDaemon(t, {name: 'second', mesh: mesh()});
  const ask = async ({url}: Daemon) => chatText(url, {model: deep, max_tokens: 3});
  await until('the holder is known', async () => (await models(entry.url)).length === 1);
  t.is((await ask(entry)).status, 200);
  await entry.stop();
  const again = await startDaemon(t, {name: 'second', mesh: mesh(), dataFolder: entry.dataFolder});
  const {value, ms} = await timed(async () => ask(again));
  t.like(value, {status: 200, text: counted(3), done: true});
  t.log(`${ms.toFixed(0)} ms`);
  t.true(ms < 5000 * 5, `${ms} ms`);
});
