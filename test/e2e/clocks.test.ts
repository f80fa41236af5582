import {randomUUID} from 'node:crypto';
import {join} from 'node:path';
import {setTimeout as sleep} from 'node:timers/promises';
import {pathToFileURL} from 'node:url';
import test from 'ava';
import {chatText} from '../support/chat.ts';
import {startDaemon} from '../support/daemon.ts';
import {modelFolder} from '../support/models.ts';
import {aliveNames} from '../support/reports.ts';
import {until} from '../support/until.ts';

/** Longer than a record counts in a mesh of two: whoever went by another's clock would have lost it by then. */
const lifetimeMs = 8000;

test.serial('R42: clocks that differ by ten minutes, and one that is set back by an hour, change nothing', async t => {
  t.timeout(300_000);
  const mesh = `test-${randomUUID().slice(0, 8)}`;
  const preload = pathToFileURL(join(import.meta.dirname, '..', 'fixtures', 'shifted-clock.mjs'));
  const shifted = (minutes: number): Record<string, string> => ({
    NODE_OPTIONS: `--import ${preload.href}`,
    SHIFT_MS: String(minutes * 60_000),
  });
  const [holder, entry] = await Promise.all([
    startDaemon(t, {
      name: 'holder',
      mesh,
      models: [await modelFolder(t, 'tiny-count-F16.gguf')],
      variables: shifted(5),
    }),
    startDaemon(t, {name: 'entry', mesh, variables: shifted(-5)}),
  ]);
  const isServed = async (): Promise<boolean> =>
    (await chatText(entry.url, {model: 'tiny-count-F16', max_tokens: 3})).text === ' 1 2 3';
  const seen = async (url: string): Promise<string> => (await aliveNames(url)).join(' ');
  for (const {url} of [holder, entry]) await until('they meet', async () => (await seen(url)) === 'entry holder');
  await until('it is served', isServed, 20_000);
  for (const setBack of [false, true]) {
    if (setBack) holder.kill('SIGUSR2');
    await sleep(lifetimeMs);
    for (const {url} of [holder, entry]) t.is(await seen(url), 'entry holder');
    t.true(await isServed());
  }
  holder.kill('SIGKILL');
  await until('its record ends on time', async () => (await seen(entry.url)) === 'entry', lifetimeMs);
});
