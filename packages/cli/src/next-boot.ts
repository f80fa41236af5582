import {readFile} from 'node:fs/promises';
import {join} from 'node:path';
import type {Clock} from '@hearsay/core';
import {writeWhole} from './write-whole.ts';

/**
 * The number of this start, larger than that of every earlier one: records of a node are ordered by it. The wall
 * clock helps when the file was lost, the file when the clock was set back.
 */
export async function nextBoot(dataFolder: string, clock: Clock): Promise<number> {
  const file = join(dataFolder, 'boot');
  const boot = Math.max((await storedBoot(file)) + 1, Math.floor(clock.wallMs() / 1000));
  await writeWhole(file, `${boot}\n`);
  return boot;
}

async function storedBoot(file: string): Promise<number> {
  const text = await readFile(file, 'utf8').catch(() => ''); // missing at the first start
  const boot = /^\d{1,15}\s*$/u.test(text) ? Number(text) : 0;
  return Number.isSafeInteger(boot + 1) ? boot : 0;
}
