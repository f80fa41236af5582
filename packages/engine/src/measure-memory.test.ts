import {mkdir, mkdtemp, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import type {MemoryFacts} from '@hearsay/core';
import {manualClock} from '../../../test/support/manual-clock.ts';
import {memoryMeter} from './measure-memory.ts';

const machine = {kind: 'ram', totalBytes: 64e9, freeBytes: 40e9} as const;

function withinCgroup(facts: MemoryFacts, root: string, membership: string): MemoryFacts {
  return memoryMeter(manualClock(), {machine: () => facts, root, membership: () => membership})();
}

/** Files as cgroups show them: folder → file → text. */
async function cgroups(
  t: ExecutionContext,
  groups: Readonly<Record<string, Readonly<Record<string, string>>>>,
): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'hearsay-cgroup-'));
  t.teardown(async () => rm(root, {recursive: true}));
  for (const [folder, files] of Object.entries(groups)) {
    await mkdir(join(root, folder), {recursive: true});
    for (const [name, text] of Object.entries(files)) await writeFile(join(root, folder, name), text);
  }
  return root;
}

test('this machine has memory, and some of it is free', t => {
  const {kind, totalBytes, freeBytes} = memoryMeter(manualClock())();
  t.is(kind, 'ram');
  t.true(totalBytes > 0 && freeBytes > 0 && freeBytes <= totalBytes);
});

test('without cgroup limits the machine counts', async t => {
  const root = await cgroups(t, {'a.slice': {'memory.max': 'max\n', 'memory.current': '123\n'}});
  t.deepEqual(withinCgroup(machine, root, '0::/a.slice\n'), machine);
  t.deepEqual(withinCgroup(machine, root, '4:memory:/a.slice\n'), machine);
  t.deepEqual(withinCgroup(machine, root, ''), machine);
});

test('the limit of a surrounding group counts, and idle file pages in it are free', async t => {
  const root = await cgroups(t, {
    'a.slice': {
      'memory.max': '8000000000\n',
      'memory.current': '6000000000\n',
      'memory.stat': 'anon 1\ninactive_file 1000\n',
    },
    'a.slice/b.service': {'memory.max': 'max\n', 'memory.current': '5000000000\n'},
  });
  const facts = withinCgroup(machine, root, '1:name=systemd:/x\n0::/a.slice/b.service\n');
  t.deepEqual(facts, {kind: 'ram', totalBytes: 8e9, freeBytes: 2e9 + 1000});
});

test('a limit above what the machine has changes nothing, and more than the limit is never free', async t => {
  const large = await cgroups(t, {g: {'memory.max': '99000000000000', 'memory.current': '1'}});
  t.deepEqual(withinCgroup(machine, large, '0::/g'), machine);
  const full = await cgroups(t, {g: {'memory.max': '1000', 'memory.current': '2000'}});
  t.deepEqual(withinCgroup(machine, full, '0::/g'), {kind: 'ram', totalBytes: 1000, freeBytes: 0});
});

test('the limit of a group of version 1 counts, also where a container sees its own group as the root', async t => {
  const files = {
    'memory.limit_in_bytes': '8000000000\n',
    'memory.usage_in_bytes': '6000000000\n',
    'memory.stat': 'inactive_file 5\ntotal_inactive_file 1000\n',
  };
  const limited = {kind: 'ram', totalBytes: 8e9, freeBytes: 2e9 + 1000};
  const host = await cgroups(t, {'memory/docker/abc': files});
  t.deepEqual(withinCgroup(machine, host, '5:cpu:/x\n4:memory:/docker/abc\n'), limited);
  const inside = await cgroups(t, {memory: files});
  t.deepEqual(withinCgroup(machine, inside, '4:hugetlb,memory:/docker/abc\n0::/\n'), limited);
  t.deepEqual(withinCgroup(machine, inside, '4:memory_other:/docker/abc\n'), machine);
});

test('a group of version 1 without a limit changes nothing', async t => {
  const files = {'memory.limit_in_bytes': '9223372036854771712\n', 'memory.usage_in_bytes': '6000000000\n'};
  t.deepEqual(withinCgroup(machine, await cgroups(t, {memory: files}), '4:memory:/\n'), machine);
});

test('a limit that changes counts at once, and one that comes later after fifteen seconds', async t => {
  const root = await cgroups(t, {
    'a.slice': {'memory.max': '8000\n', 'memory.current': '6000\n'},
    'a.slice/b.service': {'memory.max': 'max\n', 'memory.current': '5000\n'},
  });
  const clock = manualClock();
  let memberships = 0;
  const membership = (): string => {
    memberships += 1;
    return '0::/a.slice/b.service\n';
  };
  const measure = memoryMeter(clock, {machine: () => machine, root, membership});
  t.is(measure().freeBytes, 2000);
  await writeFile(join(root, 'a.slice', 'memory.max'), '9000\n');
  t.is(measure().freeBytes, 3000);
  await writeFile(join(root, 'a.slice', 'b.service', 'memory.max'), '5500\n');
  await clock.advance(14_999);
  t.is(measure().freeBytes, 3000);
  t.is(memberships, 1);
  await clock.advance(1);
  t.is(measure().freeBytes, 500);
});
