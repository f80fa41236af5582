import {randomUUID} from 'node:crypto';
import {setTimeout as sleep} from 'node:timers/promises';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {chatText, counted} from '../support/chat.ts';
import type {ChatText} from '../support/chat.ts';
import {startDaemon} from '../support/daemon.ts';
import type {Daemon} from '../support/daemon.ts';
import {loadOnly} from '../support/holders.ts';
import {modelFolder} from '../support/models.ts';
import {childrenWith} from '../support/processes.ts';
import {busyAt, models, requests} from '../support/reports.ts';
import {shared} from '../support/shared.ts';
import {until} from '../support/until.ts';

const model = 'tiny-deep-F16';

/** Two holders of a slow model, and nodes without models that ask them: one for each value of `routing.spread`. */
async function startNodes(
  t: Parameters<typeof startDaemon>[0],
  spreads: readonly string[],
  variables: Readonly<Record<string, string>>,
): Promise<{readonly entries: readonly Daemon[]; readonly holders: readonly Daemon[]}> {
  const mesh = `test-${randomUUID().slice(0, 8)}`;
  const folder = await modelFolder(t, `${model}.gguf`);
  const entry = async (HEARSAY_SPREAD: string): Promise<Daemon> =>
    startDaemon(t, {mesh, name: `entry-${HEARSAY_SPREAD}`, variables: {...variables, HEARSAY_SPREAD}});
  const holder = async (index: number): Promise<Daemon> =>
    startDaemon(t, {mesh, name: `holder-${index}`, variables, models: [folder]});
  const [entries, holders] = await Promise.all([Promise.all(spreads.map(entry)), Promise.all([holder(0), holder(1)])]);
  const known = async (url: string) => (await models(url)).some(({nodes}) => nodes.length === holders.length);
  for (const {url} of entries) await until('the entry node knows every holder', async () => known(url), 60_000);
  return {entries, holders};
}

/** For two tests that freeze what they wake again. */
const impatient = shared('nodes that wait three seconds', async ends =>
  startNodes(ends, ['off', 'auto'], {HEARSAY_FIRST_BYTE_MIN: '3s'}),
);

interface Asked extends ChatText {
  readonly node: string | null;
  readonly attempts: string | null;
}

async function ask(entry: Daemon, body: object = {}): Promise<Asked> {
  const {status, headers, ...answer} = await chatText(entry.url, {model, max_tokens: 5, ...body});
  if (status !== 200) throw new Error(`status ${status}; the log of the entry node:\n${entry.stderr()}`);
  return {...answer, node: headers.get('x-hearsay-node'), attempts: headers.get('x-hearsay-attempts')};
}

/** Stops processes for as long as the test runs, so that everything can still end. */
function freeze(t: ExecutionContext, ...processes: readonly number[]): void {
  for (const pid of processes) {
    process.kill(pid, 'SIGSTOP');
    t.teardown(() => process.kill(pid, 'SIGCONT'));
  }
}

/** The first may have been kept waiting with comments, and then has no headers; the next finds its way at once. */
async function runsElsewhere(t: ExecutionContext, entry: Daemon, frozen: string | null): Promise<void> {
  const {text, done} = await ask(entry);
  t.deepEqual([text, done], [counted(5), true]);
  t.true(((await requests(entry.url))[0]?.attempts ?? 0) > 1, 'the frozen one was asked first');
  const next = await ask(entry);
  t.deepEqual([next.text, next.attempts], [counted(5), '1']);
  t.not(next.node, frozen);
}

test.serial('R27, S83: a node whose llama-server is frozen is left before output and not chosen next time', async t => {
  const {entries, holders} = impatient();
  const [entry] = entries;
  const [loaded] = holders;
  if (!entry || !loaded) return t.fail();
  await loadOnly(entry, model, loaded);
  t.is((await ask(entry)).node, loaded.name);
  await until('the slot is free', async () => (await busyAt(loaded.url)) === 0);
  freeze(t, ...childrenWith(`--alias ${model} `, [loaded.pid]));

  await runsElsewhere(t, entry, loaded.name);
});

test.serial('R27, S83: a frozen daemon is left before output and not chosen next time', async t => {
  const {entries, holders} = impatient();
  const [, entry] = entries;
  const [loaded] = holders;
  if (!entry || !loaded) return t.fail();
  await loadOnly(entry, model, loaded); // else two have it loaded, and either may be asked
  t.is((await ask(entry)).node, loaded.name);
  freeze(t, loaded.pid);

  await runsElsewhere(t, entry, loaded.name);
});

test.serial('R25: a prompt too long for the node that is asked first runs where the context is longer', async t => {
  const mesh = `test-${randomUUID().slice(0, 8)}`;
  const folder = await modelFolder(t, 'tiny-count-F16.gguf');
  const variables = (context: number) => ({HEARSAY_THREADS: '1', HEARSAY_CONTEXT: String(context)});
  const short = await startDaemon(t, {name: 'short', mesh, models: [folder], variables: variables(256)});
  const long = await startDaemon(t, {name: 'long', mesh, models: [folder], variables: variables(2048)});
  await until('both are known', async () => (await models(short.url))[0]?.nodes.length === 2, 30_000);
  await chatText(short.url, {model: 'tiny-count-F16', max_tokens: 2});

  const messages = [{role: 'user', content: 'word '.repeat(100)}];
  const {status, headers, text} = await chatText(short.url, {model: 'tiny-count-F16', max_tokens: 3, messages});
  t.deepEqual([status, text, headers.get('x-hearsay-node')], [200, counted(3), 'long']);
  const huge = [{role: 'user', content: 'word '.repeat(9000)}];
  t.is((await chatText(short.url, {model: 'tiny-count-F16', messages: huge})).status, 400);
  t.is(await long.stop(), 0);
});

/** More at once than one slot can answer soon, after the first has shown how long each takes: who has answered. */
async function askMany(entry: Daemon): Promise<ReadonlySet<string | undefined>> {
  const body = {max_tokens: 60, ignore_eos: true};
  await ask(entry, body);
  await sleep(6000); // what it took is told within two seconds, and no report shows that
  await Promise.all(Array.from({length: 6}, async () => ask(entry, body)));
  // Not by the headers: one that waited long has none.
  return new Set((await requests(entry.url)).map(({nodeName}) => nodeName));
}

test.serial('S21, S59: with spread off a busy holder is waited for, and there is never a second copy', async t => {
  const {entries, holders} = await startNodes(t, ['off'], {HEARSAY_SLOTS: '1'});
  const [entry] = entries;
  if (!entry) return t.fail();
  t.is((await askMany(entry)).size, 1);
  t.is(
    childrenWith(
      `--alias ${model} `,
      holders.map(({pid}) => pid),
    ).length,
    1,
  );
});

test.serial('S21, S59: with auto a second copy is made when the measured wait is longer than a load', async t => {
  const {entries, holders} = await startNodes(t, ['auto'], {HEARSAY_SLOTS: '1'});
  const [entry] = entries;
  if (!entry) return t.fail();
  t.is((await askMany(entry)).size, 2);
  t.is(
    childrenWith(
      `--alias ${model} `,
      holders.map(({pid}) => pid),
    ).length,
    2,
  );
});
