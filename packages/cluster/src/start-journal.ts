import type {DatabaseSync} from 'node:sqlite';
import {compactFacts, describeError, summarize} from '@hearsay/core';
import type {Environment, Journal, JournaledEvent, JournaledRequest, JournalQuery, RequestEvent} from '@hearsay/core';
import type {RequestId, RequestSummary} from '@hearsay/core';
import {packEvents, packSummary, unpackEvents, unpackSummary} from './journal-format.ts';
import {numberOf, openJournalFile} from './journal-file.ts';

export interface JournalConfig {
  readonly file: string;
  /** How long a request is kept. */
  readonly keepMs: number;
  /** How large the file may become; the oldest requests go first. */
  readonly sizeBytesMax: number;
}

/** What is noted is on disk after this long at the latest, even when the process is killed. */
const flushAfterMs = 400;

/** Events that wait to be written. More than a disk that stands still for seconds lets pile up; then the oldest go. */
const waitingMax = 20_000;

/** How long one transaction may take, for nothing else runs in this process meanwhile; then everybody has a turn. */
const batchMsMax = 2;

/** Events in one transaction: what is left is written a moment later. */
const batchMax = 400;

/** How often what is too old or too much is deleted. */
const tidyEveryMs = 60_000;

/** Requests that one tidying deletes for size, as a part of all: a few rounds and the file is small enough. */
const tidyPart = 0.1;

/** Most requests that one answer lists. */
const listMax = 1000;

interface Noted {
  readonly request: RequestId;
  readonly event: RequestEvent;
  readonly wallMs: number;
  readonly monotonicMs: number;
}

interface OpenRequest {
  /** Of its row. */
  readonly number: number;
  readonly startedMs: number;
  readonly summary: RequestSummary;
}

/** What a batch changes, until it is on disk. */
interface Written {
  change: number;
  /** Undefined: it has ended. */
  readonly open: Map<RequestId, OpenRequest | undefined>;
  readonly events: Set<Noted>;
}

/** Opens the journal of this node and keeps it. Requests that a killed daemon left open are closed as interrupted. */
export function startJournal(config: JournalConfig, environment: Environment): Journal {
  const file = openJournalFile(config.file, environment.clock.wallMs(), environment.log);
  return new SqliteJournal(file, config, environment);
}

class SqliteJournal implements Journal {
  readonly #file: DatabaseSync;
  readonly #config: JournalConfig;
  readonly #environment: Environment;
  readonly #statements: ReturnType<typeof prepare>;
  /** Requests that have not ended. */
  readonly #open = new Map<RequestId, OpenRequest>();
  #waiting: Noted[] = [];
  #change: number;
  #lost = 0;
  #timer: Disposable | undefined;
  #isClosed = false;
  #tidyTimer: Disposable;

  constructor(file: DatabaseSync, config: JournalConfig, environment: Environment) {
    this.#file = file;
    this.#config = config;
    this.#environment = environment;
    this.#statements = prepare(file);
    this.#change = numberOf(file, 'SELECT max(change) FROM requests');
    this.#closeLeftOpen();
    this.#tidyTimer = environment.clock.after(0, () => this.#tidy());
  }

  note(request: RequestId, event: RequestEvent): void {
    if (this.#isClosed) return; // the next start closes what was left open
    const {clock} = this.#environment;
    this.#waiting.push({request, event, wallMs: clock.wallMs(), monotonicMs: clock.monotonicMs()});
    if (this.#waiting.length > waitingMax) {
      this.#waiting.shift();
      this.#lost += 1;
    }
    this.#timer ??= clock.after(flushAfterMs, () => this.#flushSome());
  }

  requests({after, countMax}: JournalQuery): readonly RequestSummary[] {
    this.#flushAll();
    const count = Math.min(countMax, listMax);
    const {newest, changed} = this.#statements;
    const rows = after === undefined ? newest.all(count) : changed.all(after, count);
    return rows.flatMap(({summary}) => unpackSummary(summary) ?? []);
  }

  find(id: string): JournaledRequest | undefined {
    this.#flushAll();
    if (!/^[0-9a-f]{4,24}$/u.test(id)) return undefined;
    const [row, other] = this.#statements.byId.all(id, `${id}g`); // 'g' sorts after every hex digit
    const summary = row && unpackSummary(row['summary']);
    if (summary === undefined || other !== undefined) return undefined;
    const rows = this.#statements.events.all(Number(row?.['number']));
    return {summary, events: rows.flatMap(({events}) => unpackEvents(events))};
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#tidyTimer[Symbol.dispose]();
    this.#flushAll();
    this.#isClosed = true;
    this.#timer?.[Symbol.dispose]();
    this.#file.close();
  }

  #flushAll(): void {
    while (this.#waiting.length > 0 && this.#writeBatch());
  }

  /** One batch, and the rest after everything else had its turn. */
  #flushSome(): void {
    this.#timer = undefined;
    const {clock, log} = this.#environment;
    const written = this.#writeBatch();
    if (this.#lost > 0) log('warn', 'the journal could not keep up and has lost events', {lost: this.#lost});
    this.#lost = 0;
    if (this.#waiting.length > 0) this.#timer = clock.after(written ? 0 : flushAfterMs, () => this.#flushSome());
  }

  /** False when the disk did not take it; the events then wait for the next time. */
  #writeBatch(): boolean {
    const {clock} = this.#environment;
    const written: Written = {change: this.#change, open: new Map(), events: new Set()};
    const endMs = clock.monotonicMs() + batchMsMax;
    try {
      this.#file.exec('BEGIN IMMEDIATE');
      for (const [request, events] of Map.groupBy(this.#waiting.slice(0, batchMax), each => each.request)) {
        this.#write(request, events, written);
        if (clock.monotonicMs() > endMs) break;
      }
      this.#file.exec('COMMIT');
    } catch (error) {
      this.#environment.log('error', 'the journal cannot be written; trying again', {error: describeError(error)});
      if (this.#file.isTransaction) this.#file.exec('ROLLBACK');
      return false;
    }
    this.#waiting = this.#waiting.filter(noted => !written.events.has(noted));
    this.#change = written.change;
    for (const [request, open] of written.open) {
      if (open) this.#open.set(request, open);
      else this.#open.delete(request);
    }
    return true;
  }

  /**
   * What happened to one request since the last batch, as one row, because each row costs as much as all that is in it.
   * What follows from it is only taken over when the whole batch is on disk.
   */
  #write(request: RequestId, noted: readonly Noted[], written: Written): void {
    const known = this.#open.get(request);
    let startedMs = known?.startedMs;
    let summary = known?.summary;
    const change = written.change + 1;
    const events: JournaledEvent[] = [];
    for (const each of noted) {
      const {event, wallMs, monotonicMs} = each;
      startedMs = event.kind === 'arrived' ? monotonicMs : (startedMs ?? monotonicMs);
      const sinceMs = Math.max(0, monotonicMs - startedMs);
      events.push({sinceMs, event: event.kind === 'decided' ? {...event, facts: compactFacts(event.facts)} : event});
      const isOver = event.kind !== 'arrived' && summary?.outcome !== undefined;
      if (!isOver) summary = summarize(summary, request, event, {wallMs, sinceMs, change});
      written.events.add(each);
    }
    const number = known?.number ?? this.#numberOf(request, summary, change);
    if (number === undefined) return;
    this.#statements.addEvents.run(number, packEvents(events));
    if (summary === undefined || startedMs === undefined) return;
    written.change = change;
    written.open.set(request, summary.outcome === undefined ? {number, startedMs, summary} : undefined);
    if (known) this.#statements.change.run(change, summary.outcome ?? null, packSummary(summary), number);
  }

  /** The row of a request that is not open: a new one where it begins now. What came too late is added to the old. */
  #numberOf(request: RequestId, summary: RequestSummary | undefined, change: number): number | undefined {
    const {begin, numberOf: find} = this.#statements;
    const row =
      summary === undefined
        ? find.get(request)
        : begin.get(request, summary.atMs, change, summary.outcome ?? null, packSummary(summary));
    return row && Number(row['number']);
  }

  #closeLeftOpen(): void {
    for (const row of this.#statements.leftOpen.all()) {
      const summary = unpackSummary(row['summary']);
      if (summary === undefined) continue;
      const wallMs = this.#environment.clock.wallMs();
      const startedMs = this.#environment.clock.monotonicMs();
      this.#open.set(summary.id, {number: Number(row['number']), startedMs, summary});
      const message = 'the daemon ended while it ran';
      const event: RequestEvent = {
        kind: 'ended',
        outcome: 'interrupted',
        code: 'INTERRUPTED',
        message,
        usage: undefined,
      };
      this.#waiting.push({request: summary.id, event, wallMs, monotonicMs: this.#environment.clock.monotonicMs()});
    }
    this.#flushAll();
  }

  #tidy(): void {
    const {clock, log} = this.#environment;
    try {
      this.#deleteBefore(clock.wallMs() - this.#config.keepMs);
      if (this.#usedBytes() > this.#config.sizeBytesMax) this.#deleteOldest();
      this.#file.exec('PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(PASSIVE);');
    } catch (error) {
      log('warn', 'the journal could not be tidied; trying again', {error: describeError(error)});
    }
    this.#tidyTimer = clock.after(tidyEveryMs, () => this.#tidy());
  }

  #deleteOldest(): void {
    const {file, limits} = {file: this.#file, limits: this.#config.sizeBytesMax};
    while (this.#usedBytes() > limits) {
      const part = Math.ceil(numberOf(file, `SELECT count(*) ${endedRequests}`) * tidyPart);
      if (part === 0) return;
      this.#deleteBefore(numberOf(file, `SELECT at_ms ${endedRequests} ORDER BY at_ms LIMIT 1 OFFSET ${part - 1}`) + 1);
    }
  }

  #deleteBefore(atMs: number): void {
    this.#statements.deleteEvents.run(atMs);
    this.#statements.deleteRequests.run(atMs);
  }

  #usedBytes(): number {
    const pages = numberOf(this.#file, 'PRAGMA page_count') - numberOf(this.#file, 'PRAGMA freelist_count');
    return pages * numberOf(this.#file, 'PRAGMA page_size');
  }
}

/** What may be deleted: a request that still runs has more to tell. */
const endedRequests = 'FROM requests WHERE outcome IS NOT NULL';

const beginning = `
  INSERT INTO requests (id, at_ms, change, outcome, summary) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (id) DO UPDATE SET
    at_ms = excluded.at_ms, change = excluded.change, outcome = excluded.outcome, summary = excluded.summary
  RETURNING number
`;

function prepare(file: DatabaseSync) {
  return {
    addEvents: file.prepare('INSERT INTO events (request, events) VALUES (?, ?)'),
    begin: file.prepare(beginning),
    change: file.prepare('UPDATE requests SET change = ?, outcome = ?, summary = ? WHERE number = ?'),
    numberOf: file.prepare('SELECT number FROM requests WHERE id = ?'),
    newest: file.prepare('SELECT summary FROM requests ORDER BY at_ms DESC, change DESC LIMIT ?'),
    changed: file.prepare('SELECT summary FROM requests WHERE change > ? ORDER BY change LIMIT ?'),
    byId: file.prepare('SELECT number, summary FROM requests WHERE id >= ? AND id < ? LIMIT 2'),
    events: file.prepare('SELECT events FROM events WHERE request = ? ORDER BY number'),
    leftOpen: file.prepare('SELECT number, summary FROM requests WHERE outcome IS NULL'),
    deleteEvents: file.prepare(`DELETE FROM events WHERE request IN (SELECT number ${endedRequests} AND at_ms < ?)`),
    deleteRequests: file.prepare(`DELETE ${endedRequests} AND at_ms < ?`),
  };
}
