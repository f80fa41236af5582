import {renameSync} from 'node:fs';
import {DatabaseSync} from 'node:sqlite';
import {describeError, hasCode} from '@hearsay/core';
import type {Log} from '@hearsay/core';

/** Layout of the tables below. A file of another one is put aside, not read. */
const layout = 3;

/**
 * Everything but the index of ids grows at its end, so that the requests of one batch share their pages: written in
 * the order of random ids, each request would cost a page of its own in every tree.
 */
const tables = `
  CREATE TABLE IF NOT EXISTS requests (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    at_ms INTEGER NOT NULL,
    change INTEGER NOT NULL,
    outcome TEXT,
    summary TEXT NOT NULL
  );
  CREATE INDEX IF NOT EXISTS requests_at ON requests (at_ms);
  CREATE INDEX IF NOT EXISTS requests_change ON requests (change);
  CREATE TABLE IF NOT EXISTS events (
    number INTEGER PRIMARY KEY,
    request INTEGER NOT NULL,
    events BLOB NOT NULL
  );
  CREATE INDEX IF NOT EXISTS events_request ON events (request);
`;

/**
 * Opens the file of the journal, or makes it. Write-ahead log with NORMAL: a killed process loses nothing that was
 * committed, and a power cut loses the last commits but never the file. A file that cannot be used is put aside under
 * another name, because a journal must not keep a node from serving.
 */
export function openJournalFile(path: string, stamp: number, log: Log): DatabaseSync {
  try {
    return open(path);
  } catch (error) {
    const aside = `${path}.unusable-${stamp}`;
    log('warn', 'the journal cannot be read; it is put aside and a new one begun', {
      aside,
      error: describeError(error),
    });
    for (const suffix of ['', '-wal', '-shm']) moveAside(`${path}${suffix}`, `${aside}${suffix}`);
    return open(path);
  }
}

function open(path: string): DatabaseSync {
  const file = new DatabaseSync(path);
  try {
    const found = numberOf(file, 'PRAGMA user_version');
    const isNew = numberOf(file, 'SELECT count(*) FROM sqlite_schema') === 0;
    if (!isNew && found !== layout) throw new Error(`its layout is ${found}, not ${layout}`);
    file.exec('PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;');
    file.exec('PRAGMA journal_size_limit = 4194304; PRAGMA busy_timeout = 50;');
    file.exec(tables);
    file.exec(`PRAGMA user_version = ${layout}`);
    return file;
  } catch (error) {
    file.close();
    throw error;
  }
}

/** The first column of the first row, as a number. */
export function numberOf(file: DatabaseSync, query: string): number {
  const row = file.prepare(query).get() ?? {};
  return Number(Object.values(row)[0] ?? 0);
}

function moveAside(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
  }
}
