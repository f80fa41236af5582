import {readFileSync} from 'node:fs';
import {freemem, totalmem} from 'node:os';
import {dirname, join} from 'node:path';
import type {MemoryFacts} from '@hearsay/core';

/** Most levels of cgroups looked at; systemd and containers nest fewer. */
const levelsMax = 16;

/** Memory for models in system RAM: what the machine has, or less where a container or a service is limited to less. */
export function measureMemory(): MemoryFacts {
  const machine = {kind: 'ram', totalBytes: totalmem(), freeBytes: freemem()} as const;
  return process.platform === 'linux'
    ? withinCgroup(machine, '/sys/fs/cgroup', readText('/proc/self/cgroup'))
    : machine;
}

/**
 * Respects the limits of cgroup v2, of this group and of those around it. Cached file pages that are not in use count
 * as free, because the kernel gives them up first.
 */
export function withinCgroup(machine: MemoryFacts, root: string, membership: string): MemoryFacts {
  const path = /^0::(?<path>\/.*)$/mu.exec(membership)?.groups?.['path'];
  let facts = machine;
  for (let level = 0, group = path; group !== undefined && level < levelsMax; level += 1) {
    facts = withinGroup(facts, join(root, group));
    group = group === '/' ? undefined : dirname(group);
  }
  return facts;
}

function withinGroup(facts: MemoryFacts, folder: string): MemoryFacts {
  const limitBytes = Number.parseInt(readText(join(folder, 'memory.max')), 10); // "max" means none
  const usedBytes = Number.parseInt(readText(join(folder, 'memory.current')), 10);
  if (Number.isNaN(limitBytes) || Number.isNaN(usedBytes)) return facts;
  const idle = /^inactive_file (?<bytes>\d+)$/mu.exec(readText(join(folder, 'memory.stat')))?.groups?.['bytes'];
  const freeBytes = Math.max(0, limitBytes - usedBytes + Number(idle ?? 0));
  return {
    ...facts,
    totalBytes: Math.min(facts.totalBytes, limitBytes),
    freeBytes: Math.min(facts.freeBytes, freeBytes, limitBytes),
  };
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // no such limit here
  }
}
