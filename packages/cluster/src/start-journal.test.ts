import {spawn} from 'node:child_process';
import {once} from 'node:events';
import {mkdtempSync, readdirSync, rmSync, statSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {DatabaseSync} from 'node:sqlite';
import {decide, newRequestId, replayDecisions} from '@hearsay/core';
import type {Environment, RequestEvent, RequestId} from '@hearsay/core';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {node} from '../../../test/support/builders.ts';
import {arrived, decisionFacts, ended} from '../../../test/support/journal-events.ts';
import {manualClock} from '../../../test/support/manual-clock.ts';
import {realEnvironment} from '../../../test/support/environment.ts';
import {until} from '../../../test/support/until.ts';
import {startJournal} from './start-journal.ts';
import type {JournalConfig} from './start-journal.ts';

const environment = realEnvironment();
const newId = (): RequestId => newRequestId(environment.random);

function journalFile(t: ExecutionContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'hearsay-journal-'));
  t.teardown(() => rmSync(folder, {recursive: true, force: true}));
  return join(folder, 'journal.db');
}

const config = (file: string, changes: Partial<JournalConfig> = {}): JournalConfig => ({
  file,
  keepMs: 86_400_000,
  sizeBytesMax: 1e9,
  ...changes,
});

test('S82: what was noted is listed at once and survives a restart', async t => {
  const file = journalFile(t);
  const id = newId();
  {
    await using journal = startJournal(config(file), environment);
    journal.note(id, arrived('qwen'));
    t.like(journal.requests({countMax: 9, after: undefined})[0], {id, asked: 'qwen', outcome: undefined});
    journal.note(id, {kind: 'offered', attempt: 1, node: node('B'), nodeName: 'b', force: false, estimateMs: 7});
    journal.note(id, ended('finished'));
  }
  await using journal = startJournal(config(file), environment);
  const found = journal.find(id.slice(0, 8));
  t.like(found?.summary, {id, outcome: 'finished', attempts: 1, estimateMs: 7});
  t.deepEqual(
    found?.events.map(({event}) => event.kind),
    ['arrived', 'offered', 'ended'],
  );
});

test('law 9: a decision comes back from the file with all that it was made from, and comes out the same', async t => {
  const file = journalFile(t);
  const id = newId();
  const facts = decisionFacts(id);
  {
    await using journal = startJournal(config(file), environment);
    journal.note(id, arrived('m'));
    journal.note(id, {kind: 'decided', facts, ranked: decide(facts).ranked});
  }
  await using journal = startJournal(config(file), environment);
  const events = journal.find(id)?.events ?? [];
  const [replayed] = replayDecisions(events);
  t.like(replayed, {agrees: true, differences: [], recorded: 'B', again: 'B'});
});

test('a request that a killed daemon left open is interrupted at the next start', async t => {
  const file = journalFile(t);
  const id = newId();
  await using first = startJournal(config(file), environment);
  first.note(id, arrived('m'));
  first.requests({countMax: 1, after: undefined});
  await using second = startJournal(config(file), environment);
  t.like(second.find(id)?.summary, {outcome: 'interrupted', message: 'the daemon ended while it ran'});
});

test('law 10: killed at any moment, the file is whole and lacks at most the last second', async t => {
  for (const afterMs of [300, 900, 1700]) {
    const file = journalFile(t);
    const fixture = join(import.meta.dirname, '..', '..', '..', 'test', 'fixtures', 'journal-writer.ts');
    const writer = spawn(process.execPath, [fixture, file], {stdio: ['ignore', 'pipe', 'inherit']});
    let text = '';
    writer.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    await until('it writes', () => text !== '');
    await environment.clock.sleep(afterMs);
    writer.kill('SIGKILL');
    await once(writer, 'close');

    const raw = new DatabaseSync(file);
    t.deepEqual({...raw.prepare('PRAGMA integrity_check').get()}, {integrity_check: 'ok'});
    raw.close();
    const noted = text.split('\n').flatMap(line => (/^[0-9a-f]{24} \d+$/u.test(line) ? [line.split(' ')] : []));
    const lastMs = Number(noted.at(-1)?.[1]);
    await using journal = startJournal(config(file), environment);
    const lost = noted.filter(([id = '']) => journal.find(id)?.summary.outcome !== 'finished');
    t.deepEqual(
      lost.filter(([, atMs]) => lastMs - Number(atMs) > 1000),
      [],
      `${lost.length} of ${noted.length} lost`,
    );
  }
});

test('what is older than the retention goes, and what is younger stays', async t => {
  const file = journalFile(t);
  const [old, young] = [newId(), newId()];
  {
    const past = {...environment.clock, wallMs: () => environment.clock.wallMs() - 100_000};
    await using journal = startJournal(config(file), {...environment, clock: past});
    journal.note(old, arrived('m'));
    journal.note(old, ended('finished'));
  }
  await using journal = startJournal(config(file, {keepMs: 50_000}), environment);
  journal.note(young, arrived('m'));
  await until('the old one is gone', () => journal.find(old) === undefined);
  t.is(journal.find(young)?.summary.id, young);
});

test('a journal that has become too large loses its oldest requests and its file shrinks', async t => {
  const file = journalFile(t);
  const ids = Array.from({length: 2000}, newId);
  let wallMs = environment.clock.wallMs() - 100_000;
  const ticking = {...environment.clock, wallMs: () => (wallMs += 1)}; // requests of one millisecond go together
  {
    await using journal = startJournal(config(file), {...environment, clock: ticking});
    for (const id of ids) for (const event of [arrived('m'.repeat(190)), ended('finished')]) journal.note(id, event);
  }
  const before = statSync(file).size;
  {
    await using journal = startJournal(config(file, {sizeBytesMax: before / 4}), environment);
    await until('the first one is gone', () => journal.find(ids[0] ?? '') === undefined);
    t.is(journal.find(ids.at(-1) ?? '')?.summary.id, ids.at(-1));
  }
  t.true(statSync(file).size < before / 2, `${statSync(file).size} of ${before}`);
});

test('a file that is no journal is put aside with a warning, and a new one serves', async t => {
  const file = journalFile(t);
  writeFileSync(file, 'this is not a database, but it is longer than its header would be'.repeat(20));
  const warnings: string[] = [];
  const log: Environment['log'] = (level, message) => void (level === 'warn' && warnings.push(message));
  await using journal = startJournal(config(file), {...environment, log});
  const id = newId();
  journal.note(id, arrived('m'));
  t.is(journal.find(id)?.summary.id, id);
  t.regex(warnings[0] ?? '', /put aside/u);
  t.is(readdirSync(join(file, '..')).filter(name => name.includes('unusable')).length, 1);
});

test('the beginning of an id finds nothing when two requests share it', async t => {
  await using journal = startJournal(config(journalFile(t)), environment);
  const ids = ['aaaa00000000000000000001', 'aaaa00000000000000000002'].map(text => toId(text));
  for (const id of ids) journal.note(id, arrived('m'));
  t.is(journal.find('aaaa'), undefined);
  t.is(journal.find('aaaa00000000000000000002')?.summary.id, ids[1]);
});

test('asking for what changed since gives each change once, the oldest first', async t => {
  await using journal = startJournal(config(journalFile(t)), environment);
  const [first, second] = [newId(), newId()];
  const events: readonly (readonly [RequestId, RequestEvent])[] = [
    [first, arrived('m')],
    [second, arrived('m')],
  ];
  for (const [id, event] of events) journal.note(id, event);
  const seen = journal.requests({countMax: 9, after: 0});
  t.deepEqual(
    seen.map(({id}) => id),
    [first, second],
  );
  journal.note(first, ended('cancelled'));
  const next = journal.requests({countMax: 9, after: seen.at(-1)?.change});
  t.deepEqual(
    next.map(({id, outcome}) => [id, outcome]),
    [[first, 'cancelled']],
  );
});

function toId(text: string): RequestId {
  return newRequestId({next: () => 0, bytes: () => Uint8Array.from(Buffer.from(text, 'hex'))});
}

test('what could not be written is written as soon as it can be, and nothing of it is lost', async t => {
  const file = journalFile(t);
  const [first, second] = [newId(), newId()];
  const errors: string[] = [];
  const log: Environment['log'] = (level, message) => void (level === 'error' && errors.push(message));
  await using journal = startJournal(config(file), {...environment, log});
  for (const id of [first, second]) journal.note(id, arrived('m'));
  t.is(journal.requests({countMax: 9, after: undefined}).length, 2);
  const other = new DatabaseSync(file);
  const isSecond = `NEW.id = '${second}'`;
  other.exec(`CREATE TRIGGER full BEFORE UPDATE ON requests WHEN ${isSecond} BEGIN SELECT RAISE(ABORT, 'full'); END`);
  for (const id of [first, second]) journal.note(id, ended('finished'));
  await until('the journal has met the fault', () => errors.length > 0);
  other.exec('DROP TRIGGER full');
  other.close();
  for (const id of [first, second]) {
    const found = journal.find(id);
    t.is(found?.summary.outcome, 'finished');
    t.is(found?.events.length, 2);
  }
  t.regex(errors[0] ?? '', /trying again/u);
});

test('what is noted after the end of the journal harms nobody, and is left to the next start', async t => {
  const file = journalFile(t);
  const id = newId();
  const clock = manualClock();
  const logged: string[] = [];
  const told: Environment = {...environment, clock, log: (_level, message) => void logged.push(message)};
  const closed = startJournal(config(file), told);
  closed.note(id, arrived('m'));
  await closed[Symbol.asyncDispose]();
  closed.note(id, ended('finished'));
  await clock.advance(60_000);
  t.deepEqual(logged, []);
  await using journal = startJournal(config(file), environment);
  t.is(journal.find(id)?.summary.outcome, 'interrupted');
});

test('what is noted of a request after its end is kept with it and changes nothing of how it ended', async t => {
  await using journal = startJournal(config(journalFile(t)), environment);
  const id = newId();
  journal.note(id, arrived('m'));
  journal.note(id, ended('finished'));
  t.is(journal.find(id)?.events.length, 2); // on disk by now
  journal.note(id, ended('interrupted'));
  const found = journal.find(id);
  t.is(found?.summary.outcome, 'finished');
  t.is(found?.events.length, 3);
});

test('law 10: old requests go while one of them is still open, which then ends as itself', async t => {
  let aheadMs = 0;
  const timers: (() => void)[] = [];
  const clock = {
    ...environment.clock,
    wallMs: () => environment.clock.wallMs() + aheadMs,
    after: (ms: number, run: () => void) => {
      if (ms === 60_000 || ms === 0) timers.push(run);
      return environment.clock.after(ms === 60_000 ? Infinity : ms, run);
    },
  };
  await using journal = startJournal(config(journalFile(t), {keepMs: 50_000}), {...environment, clock});
  const [done, long, other] = [newId(), newId(), newId()];
  journal.note(done, arrived('done'));
  journal.note(done, ended('finished'));
  journal.note(long, arrived('long'));
  t.is(journal.requests({countMax: 9, after: undefined}).length, 2);
  aheadMs = 30 * 86_400_000;
  timers.at(-1)?.(); // tidies
  t.is(journal.find(done), undefined);
  journal.note(other, arrived('other'));
  t.is(journal.find(other)?.summary.id, other);
  journal.note(long, ended('finished'));
  t.like(journal.find(long)?.summary, {id: long, outcome: 'finished'});
  t.is(journal.find(long)?.events.length, 2);
  t.is(journal.find(other)?.events.length, 1);
});

test('a journal that is too large for what is open alone keeps that and serves', async t => {
  const file = journalFile(t);
  const ids = Array.from({length: 300}, newId);
  await using journal = startJournal(config(file, {sizeBytesMax: 20_000}), environment);
  for (const id of ids) journal.note(id, arrived('m'.repeat(190)));
  await until('they are on disk', () => journal.requests({countMax: 1000, after: undefined}).length === ids.length);
  await using again = startJournal(config(file, {sizeBytesMax: 20_000}), environment);
  await until('what was left open goes once it is interrupted', () => again.find(ids[0] ?? '') === undefined);
  const id = newId();
  again.note(id, arrived('m'));
  t.is(again.find(id)?.summary.id, id);
});
