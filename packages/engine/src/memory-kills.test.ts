import {writeFile} from 'node:fs/promises';
import {join} from 'node:path';
import test from 'ava';
import {temporaryFolder} from '../../../test/support/engine-trial.ts';
import {MemoryKills} from './memory-kills.ts';

test('a kill for want of memory is seen by the counter of the system', async t => {
  const file = join(await temporaryFolder(t), 'vmstat');
  await writeFile(file, 'nr_free_pages 5\noom_kill 41\ndrop_pagecache 0\n');
  const kills = new MemoryKills(file);
  t.false(await kills.haveGrown());
  await writeFile(file, 'nr_free_pages 5\noom_kill 42\ndrop_pagecache 0\n');
  t.true(await kills.haveGrown());
});

test('a system without the counter tells nothing', async t => {
  t.is(await new MemoryKills(join(await temporaryFolder(t), 'missing')).haveGrown(), undefined);
});
