import {spawnSync} from 'node:child_process';
import {chmod, writeFile} from 'node:fs/promises';
import {join} from 'node:path';
import test from 'ava';
import type {Fault} from '@hearsay/core';
import {chat, snapshotOf, take} from '../../../test/support/engine-trial.ts';
import {temporaryFolder, tinyModel, trialHost} from '../../../test/support/engine-trial.ts';
import {isAskedToEnd} from './is-asked-to-end.ts';

/**
 * A llama-server whose SIGTERM came while its main thread held the lock that the handler wants: it listens and is
 * `ok`, but nothing else is ever answered. As that is a matter of luck, this one only looks like it from outside.
 */
const engineText = `
  const {createServer} = require('node:http');
  let isStuck = false;
  setTimeout(process.exit, 60_000); // it does not notice how this test ends
  createServer((request, response) => {
    if (request.url === '/health' || request.url === '/props') return response.end('{}');
    if (request.url === '/slots' && !isStuck) return response.end('[]');
    if (request.method !== 'POST') return;
    isStuck = process.argv.includes('--sticks');
    response.writeHead(200, {'content-type': 'text/event-stream'});
    response.write('data: {}\\n\\n');
    if (!isStuck) setTimeout(() => response.end('data: [DONE]\\n\\n'), 1500);
  }).listen(Number(process.argv[process.argv.indexOf('--port') + 1]), '127.0.0.1');
`;

const isBlockable = process.platform === 'linux' && spawnSync('env', ['--block-signal=TERM', 'true']).status === 0;
const blockTest = isBlockable ? test : test.skip;
if (!isBlockable)
  console.log('skipped: an engine with SIGTERM blocked, which needs Linux and an env that can block signals');

async function engineThat(t: Parameters<typeof temporaryFolder>[0], ...leadingArguments: readonly string[]) {
  const folder = await temporaryFolder(t);
  const [command, script] = [join(folder, 'engine'), join(folder, 'engine.cjs')];
  await writeFile(script, engineText);
  await writeFile(
    command,
    // Node would take the signal again, so the process that is looked at is another one.
    [
      '#!/bin/sh',
      'case "$*" in *--list-devices*) exit 0 ;; esac',
      `'${process.execPath}' '${script}' "$@" &`,
      'exec env --block-signal=TERM sleep 60',
    ].join('\n'),
  );
  await chmod(command, 0o700);
  const hung = {lookEveryMs: 100, lookMsMax: 300, failuresMax: 1000};
  const host = await trialHost(t, {engine: {command, leadingArguments, description: 'script'}, hung});
  return {host, model: await tinyModel('tiny-count-F16')};
}

blockTest('an engine that got stuck when it was told to end is replaced, though it says that it is well', async t => {
  const {host, model} = await engineThat(t, '--sticks');
  await using reservation = take(host, model);
  const {body} = await chat(reservation);
  const fault = await t.throwsAsync<Fault>(Array.fromAsync(body), {message: /was told to end from outside/u});
  t.is(fault?.code, 'ENGINE_FAILED');
});

blockTest('an engine that is started without SIGTERM is left alone as long as it tells of its slots', async t => {
  const {host, model} = await engineThat(t);
  await using reservation = take(host, model);
  const {body} = await chat(reservation);
  t.true(isAskedToEnd(snapshotOf(host, model)?.processId));
  t.regex(Buffer.concat(await Array.fromAsync(body)).toString(), /DONE/u);
});

test('this process is not about to end', t => {
  t.false(isAskedToEnd(process.pid));
  t.false(isAskedToEnd(undefined));
});
