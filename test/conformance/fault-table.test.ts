import test from 'ava';
import type {Daemon} from '../support/daemon.ts';
import {engines, status} from '../support/reports.ts';
import {scriptedEngine} from '../support/scripted-engine.ts';
import type {Mishap} from '../support/scripted-engine.ts';
import {startTwoNodes} from '../support/two-nodes.ts';
import {until} from '../support/until.ts';

/**
 * Everything that an engine may do wrong, at every moment, in every dialect, streamed and whole, on the node of the
 * engine and from another one: the client gets a real status or the error of its dialect, nothing twice, and no slot
 * stays taken.
 */

interface Dialect {
  readonly path: string;
  readonly body: (prompt: string, stream: boolean) => object;
  /** A whole error body. */
  readonly errorBody: RegExp;
  /** How a stream ends that broke. */
  readonly errorEvent: RegExp;
  /** How a stream ends that did not. */
  readonly endMark: RegExp;
}

const openAiError = /^\{"error":\{.*"message":".+","type":"\w+".*"code":"\w+"/u;

const dialects: readonly Dialect[] = [
  {
    path: '/v1/chat/completions',
    body: (prompt, stream) => ({stream, messages: [{role: 'user', content: prompt}]}),
    errorBody: openAiError,
    errorEvent: /\n\ndata: \{"error":\{.*"message":".+"[^\n]*\}\n\n$/u,
    endMark: /data: \[DONE\]/u,
  },
  {
    path: '/v1/messages',
    body: (prompt, stream) => ({stream, max_tokens: 9, messages: [{role: 'user', content: prompt}]}),
    errorBody: /^\{"type":"error","error":\{"type":"\w+_error","message":".+"/u,
    errorEvent: /\n\nevent: error\ndata: \{"type":"error","error":\{"type":"\w+_error","message":".+"[^\n]*\}\n\n$/u,
    endMark: /event: message_stop/u,
  },
  {
    path: '/v1/responses',
    body: (prompt, stream) => ({stream, input: prompt}),
    errorBody: openAiError,
    errorEvent:
      /\n\nevent: response\.failed\ndata: (?=.*"status":"failed")\{.*"error":\{"code":"\w+","message":".+"[^\n]*\}\n\n$/u,
    endMark: /event: response\.completed/u,
  },
];

const moments = ['before headers', 'after headers', 'mid-token', 'before the end mark'] as const;
const breaks = ['dies', 'error event', 'clean end', 'stale length'] as const;
const mishaps: readonly Mishap[] = [
  ...moments.flatMap(at => breaks.map(how => ({at, how}))),
  {at: 'never', how: 'gzip'},
];

const files = ['tiny-count-F16.gguf'];

async function ask({url}: Daemon, {path, body}: Dialect, mishap: Mishap, stream: boolean, signal?: AbortSignal) {
  const response = await fetch(url + path, {
    method: 'POST',
    body: JSON.stringify(body(JSON.stringify(mishap), stream)),
    ...(signal ? {signal} : {}),
  });
  return {status: response.status, text: await response.text()};
}

/** Nobody holds a slot, waits for one, or is still being answered. */
async function isQuiet(...daemons: readonly Daemon[]): Promise<boolean> {
  const loads = await Promise.all(daemons.map(async ({url}) => [await status(url), await engines(url)] as const));
  return loads.every(
    ([{inFlight}, all]) =>
      inFlight === 0 && all.filter(({node}) => node === 'local').every(({busy, queued}) => busy + queued === 0),
  );
}

for (const dialect of dialects) {
  test.serial(`C51, R18, R19, R21: faults of an engine, at ${dialect.path}`, async t => {
    t.timeout(180_000);
    const {holder, entry} = await startTwoNodes(t, files, scriptedEngine);
    for (const daemon of [holder, entry]) {
      const fine = await ask(daemon, dialect, {at: 'never', how: 'clean end'}, true);
      t.is(fine.status, 200);
      t.regex(fine.text, dialect.endMark);
      for (const mishap of mishaps) {
        for (const stream of [true, false]) {
          const label = `${daemon === holder ? 'local' : 'remote'}, ${mishap.how} ${mishap.at}, stream: ${stream}`;
          const {status: code, text} = await ask(daemon, dialect, mishap, stream);
          const hasOutput = mishap.at === 'mid-token' || mishap.at === 'before the end mark' || mishap.how === 'gzip';
          if (stream && hasOutput && code === 200) {
            t.regex(text, dialect.errorEvent, label);
            t.notRegex(text, dialect.endMark, label);
            const pieces = [...text.matchAll(/one |two |three /gu)].map(([piece]) => piece);
            const whole = mishap.at === 'before the end mark' ? ['one ', 'two ', 'three '] : ['one '];
            if (mishap.how !== 'gzip') t.deepEqual(pieces, whole, `${label}: each piece once`);
          } else {
            t.true(code >= 500, `${label}: ${code} ${text}`);
            t.regex(text, dialect.errorBody, label);
            t.false(stream && hasOutput && mishap.how !== 'gzip', `${label}: what had been said is lost`);
          }
        }
      }
    }
    await until('nothing is left', async () => isQuiet(holder, entry));
  });

  test.serial(`R1, R9, C6, C7: clients that leave an engine that says nothing, at ${dialect.path}`, async t => {
    t.timeout(180_000);
    const {holder, entry} = await startTwoNodes(t, files, scriptedEngine);
    for (const daemon of [holder, entry]) {
      for (const at of moments) {
        for (const stream of [true, false]) {
          const controller = new AbortController();
          const asked = ask(daemon, dialect, {at, how: 'stalls'}, stream, controller.signal);
          await until('it runs', async () => (await engines(holder.url))[0]?.busy === 1);
          controller.abort();
          await t.throwsAsync(asked, {name: 'AbortError'});
          await until(`${at}, stream: ${stream}: the slot is free`, async () => isQuiet(holder, entry));
        }
      }
    }
    t.is((await ask(entry, dialect, {at: 'never', how: 'clean end'}, false)).status, 200);
  });
}
