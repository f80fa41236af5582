import {readdir, readFile} from 'node:fs/promises';
import {join} from 'node:path';
import test from 'ava';
import {chat, chatText, collect, counted} from '../support/chat.ts';
import {startDaemon} from '../support/daemon.ts';
import {freezeEngines, loadOnly, sharedHolders} from '../support/holders.ts';
import {busyAt, engines, requests as journaled} from '../support/reports.ts';
import {until} from '../support/until.ts';

const model = 'tiny-deep-F16';
const {take, end} = sharedHolders(model);

const idOf = (headers: Headers): string => headers.get('x-hearsay-request') ?? '';

// The first one, while nobody has asked for anything.
test.serial('route tells from any node where a request would go, and runs nothing', async t => {
  const [entry, holder] = await take(1);
  if (!holder) return t.fail();
  for (const daemon of [entry, holder]) {
    const {stdout, stderr} = await daemon.cli('route', model, '--prompt-bytes', '4000');
    t.regex(stdout, /^A request for tiny-deep-F16 would go to holder-0/u, stderr);
  }
  const pinned = await entry.cli('route', model, '--policy', 'pin=entry');
  t.regex(pinned.stdout, /could run nowhere now[^]*holder-0: the policy does not allow it/u);
  t.is((await entry.cli('route', 'no-such')).code, 3);
  const needs = await entry.cli('route', model, '--needs', 'tools,visoin');
  t.is(needs.code, 2);
  t.regex(needs.stderr, /needs must be a list of chat, .*vision, audio/u);
  t.deepEqual(await engines(holder.url), []);
  const {requests}: {requests: unknown[]} = JSON.parse((await entry.cli('requests', '--json')).stdout);
  t.deepEqual(requests, []);
});

test.serial('both ends keep their side, and neither keeps what was said', async t => {
  const [entry, holder] = await take(1);
  if (!holder) return t.fail();
  const secret = 'zzsecretzz';
  const messages = [{role: 'user', content: `${secret} count`}];
  const {headers} = await chatText(entry.url, {model, max_tokens: 5, messages});
  const bad = await chatText(entry.url, {
    model,
    max_tokens: 5,
    messages,
    grammar: `root ::= ${secret}`,
  });
  t.not(bad.status, 200);
  const {headers: none} = await chatText(entry.url, {model: `no-such`, messages});

  const listed = await entry.cli('requests', '--json');
  const {requests}: {requests: {id: string; outcome: string; role: string}[]} = JSON.parse(listed.stdout);
  const outcomes = new Map(requests.map(({id, outcome, role}) => [id, `${role} ${outcome}`]));
  t.is(outcomes.get(idOf(headers)), 'entry finished');
  t.is(outcomes.get(idOf(bad.headers)), 'entry refused');
  t.is(outcomes.get(idOf(none)), 'entry refused');
  const there = await holder.cli('why', idOf(headers));
  t.regex(there.stdout, /It came from the node …\w{8}, .*\n[^]*first output from holder-0/u);

  for (const {dataFolder} of [entry, holder]) {
    const files = (await readdir(dataFolder)).filter(name => name.startsWith('journal'));
    t.true(files.length > 0);
    for (const file of files) t.false((await readFile(join(dataFolder, file))).includes(secret), file);
  }
});

test.serial('S82, S98, S97: why tells the story of a request that was moved, and replay agrees', async t => {
  const [entry, serving, spare] = await take(2);
  if (!serving || !spare) return t.fail();
  await loadOnly(entry, model, serving);
  const wake = freezeEngines(t, serving);
  const answer = chatText(entry.url, {model, max_tokens: 5});
  await until('it works', async () => (await busyAt(serving.url)) === 1);
  // What a node has taken it may tell a moment later, together with the head of its answer.
  await until('the entry knows it', async () => (await journaled(entry.url))[0]?.digest !== undefined);
  end(serving, 'SIGKILL');
  wake();
  const {headers, status, text} = await answer;
  t.deepEqual([status, text], [200, counted(5)]);
  const other = spare.name;

  const why = await entry.cli('why', idOf(headers));
  t.is(why.code, 0, why.stderr);
  t.log(why.stdout);
  const story = new RegExp(
    [
      `Request ${idOf(headers)} for tiny-deep-F16: finished on ${other} at attempt 2\\.`,
      'It came from a client of this node, .* with the policy auto',
      'looked at 3 nodes: holder-\\d ranks first',
      'entry \\(this node\\): it does not have the model',
      `asked ${serving.name}`,
      `${serving.name} took it`,
      `${serving.name} failed before any output: `,
      'nothing had reached the client, so another node may take it',
      `${serving.name}: `,
      `asked ${other}`,
      `first output from ${other}; from here on it is never given to another node`,
      'the answer is whole',
      'Expected wait .*; the first output really came after',
      '\\d+ tokens read.*; 5 tokens written',
      'every decision comes out the same',
    ].join('[^]*'),
    'u',
  );
  t.regex(why.stdout, story);
  const replay = await entry.cli('replay', idOf(headers).slice(0, 8));
  t.is(replay.code, 0, replay.stdout + replay.stderr);
  t.regex(replay.stdout, new RegExp(`agrees: ${other} then, ${other} now`, 'u'));
  t.regex((await entry.cli('requests')).stdout, new RegExp(`tiny-deep-F16 +${other} +2 .* finished`, 'u'));
});

test.serial('law 10: a request of a daemon that was killed is interrupted after the next start', async t => {
  const [, first] = await take(1);
  if (!first) return t.fail();
  const {headers, events} = await chat(first.url, {model, max_tokens: 3000, ignore_eos: true});
  await events.next();
  await until('it is on disk', async () =>
    (await readFile(join(first.dataFolder, 'journal.db-wal'))).includes(idOf(headers)),
  );
  end(first, 'SIGKILL');
  await first.exited;
  await t.throwsAsync(collect(events));
  const second = await startDaemon(t, {dataFolder: first.dataFolder});
  t.regex((await second.cli('why', idOf(headers))).stdout, /interrupted.*\n[^]*the daemon ended while it ran/u);
});
