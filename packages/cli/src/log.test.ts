import test from 'ava';
import {Fault} from '@hearsay/core';
import type {Log, LogLevel} from '@hearsay/core';
import {createLog} from './log.ts';
import {systemClock} from './system.ts';

function logWith(level: LogLevel, pretty: boolean): {readonly log: Log; readonly lines: string[]} {
  const lines: string[] = [];
  return {lines, log: createLog({level, pretty, write: line => void lines.push(line)}, systemClock)};
}

test('JSON lines hold level, time, message, fields, and errors with their cause', t => {
  const {log, lines} = logWith('info', false);
  log('warn', 'lost', {peer: 'spark', error: new Error('outer', {cause: new Error('inner')})});
  const line: unknown = JSON.parse(lines[0] ?? '');
  t.like(line, {level: 'warn', msg: 'lost', peer: 'spark', error: {message: 'outer', cause: {message: 'inner'}}});
});

for (const pretty of [true, false]) {
  test(`what is below the level is not written, ${pretty ? 'for people' : 'as JSON'}`, t => {
    const {log, lines} = logWith('warn', pretty);
    for (const level of ['debug', 'info', 'warn', 'error'] as const) log(level, level);
    t.is(lines.length, 2);
  });
}

test('people get one line with the fields behind the message', t => {
  const {log, lines} = logWith('info', true);
  log('info', 'found', {peer: 'spark', ms: 3, note: 'two words', none: undefined});
  t.regex(lines.join(''), /^\d\d:\d\d:\d\d info  found peer=spark ms=3 note="two words"\n$/u);
});

test('a log line cannot steer the terminal and cannot grow without end', t => {
  const {log, lines} = logWith('info', true);
  log('info', 'a\u001B[2J', {name: `\u001B${'x'.repeat(5000)}`});
  const [line = ''] = lines;
  t.false(line.includes('\u001B'));
  t.true(line.length < 400);
});

test('an error of ours is shown in one line, a bug with its trace', t => {
  const {log, lines} = logWith('info', true);
  log('error', 'failed', {error: new Fault('BAD_FILE', 'half a file')});
  log('error', 'failed', {error: new TypeError('bug')});
  t.is((lines[0] ?? '').split('\n').length, 2);
  t.regex(lines[1] ?? '', /TypeError: bug\n\s+at /u);
});
