import {mkdtemp, readFile, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import type {Clock} from '@hearsay/core';
import {nextBoot} from './next-boot.ts';
import {systemClock} from './system.ts';

async function newFolder(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-boot-'));
  t.teardown(async () => rm(folder, {recursive: true}));
  return folder;
}

const at = (wallSeconds: number): Clock => ({...systemClock, wallMs: () => wallSeconds * 1000 + 999});

test('the first boot is the second it happens in', async t => {
  t.is(await nextBoot(await newFolder(t), at(1_800_000_000)), 1_800_000_000);
});

test('every start is a later boot, also two in one second and after the clock was set back', async t => {
  const folder = await newFolder(t);
  t.is(await nextBoot(folder, at(1_800_000_000)), 1_800_000_000);
  t.is(await nextBoot(folder, at(1_800_000_000)), 1_800_000_001);
  t.is(await nextBoot(folder, at(1_000_000_000)), 1_800_000_002);
  t.is(await nextBoot(folder, at(1_900_000_000)), 1_900_000_000);
  t.is((await readFile(join(folder, 'boot'), 'utf8')).trim(), '1900000000');
});

for (const text of ['', 'many', '-5', '1e30', '999999999999999999999999']) {
  test(`a boot file that holds ${JSON.stringify(text)} counts as lost`, async t => {
    const folder = await newFolder(t);
    await writeFile(join(folder, 'boot'), text);
    t.is(await nextBoot(folder, at(1_800_000_000)), 1_800_000_000);
  });
}
