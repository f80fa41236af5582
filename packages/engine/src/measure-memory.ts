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

/** Where a version of cgroups keeps what, and which line of `/proc/self/cgroup` names the group. */
interface GroupFiles {
  readonly membership: RegExp;
  /** Below the folder of all cgroups. */
  readonly folder: string;
  readonly limit: string;
  readonly used: string;
  /** Of cached file pages that are not in use, in `memory.stat`. */
  readonly idle: RegExp;
}

const versions: readonly GroupFiles[] = [
  {
    membership: /^0::(?<path>\/.*)$/mu,
    folder: '',
    limit: 'memory.max', // "max" means none
    used: 'memory.current',
    idle: /^inactive_file (?<bytes>\d+)$/mu,
  },
  {
    membership: /^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(?<path>\/.*)$/mu,
    folder: 'memory',
    limit: 'memory.limit_in_bytes', // more than any machine has means none
    used: 'memory.usage_in_bytes',
    idle: /^total_inactive_file (?<bytes>\d+)$/mu,
  },
];

/**
 * Respects the limits of cgroups, version 2 and 1, of this group and of those around it. Cached file pages that are not
 * in use count as free, because the kernel gives them up first.
 */
export function withinCgroup(machine: MemoryFacts, root: string, membership: string): MemoryFacts {
  let facts = machine;
  for (const version of versions) {
    let group = version.membership.exec(membership)?.groups?.['path'];
    for (let level = 0; group !== undefined && level < levelsMax; level += 1) {
      facts = withinGroup(facts, join(root, version.folder, group), version);
      group = group === '/' ? undefined : dirname(group);
    }
  }
  return facts;
}

function withinGroup(facts: MemoryFacts, folder: string, files: GroupFiles): MemoryFacts {
  const limitBytes = Number.parseInt(readText(join(folder, files.limit)), 10);
  const usedBytes = Number.parseInt(readText(join(folder, files.used)), 10);
  if (Number.isNaN(limitBytes) || Number.isNaN(usedBytes)) return facts;
  const idle = files.idle.exec(readText(join(folder, 'memory.stat')))?.groups?.['bytes'];
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
