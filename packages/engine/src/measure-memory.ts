import {existsSync, readFileSync} from 'node:fs';
import {freemem, totalmem} from 'node:os';
import {dirname, join} from 'node:path';
import type {Clock, MemoryFacts} from '@hearsay/core';

/** Most levels of cgroups looked at; systemd and containers nest fewer. */
const levelsMax = 16;

/** A limit that a group is given later counts after this time; to look at every group is a dozen files. */
const groupsAgeMsMax = 15_000;

/** Where it is told what this process may take. */
interface MemorySources {
  readonly machine: () => MemoryFacts;
  /** The folder of all cgroups. */
  readonly root: string;
  /** What `/proc/self/cgroup` says. */
  readonly membership: () => string;
}

const systemSources: MemorySources = {
  machine: () => ({kind: 'ram', totalBytes: totalmem(), freeBytes: freemem()}),
  root: '/sys/fs/cgroup',
  membership: () => (process.platform === 'linux' ? readText('/proc/self/cgroup') : ''),
};

/**
 * Measures memory for models in system RAM: what the machine has, or less where a container or a service is limited to
 * less. Every beat asks, so only the groups that have a limit are read each time.
 */
export function memoryMeter(
  clock: Pick<Clock, 'monotonicMs'>,
  {machine, root, membership}: MemorySources = systemSources,
): () => MemoryFacts {
  let groups: readonly Group[] = [];
  let lookedAtMs = -Infinity;
  return () => {
    const facts = machine();
    const nowMs = clock.monotonicMs();
    if (nowMs - lookedAtMs >= groupsAgeMsMax) {
      groups = limitedGroups(root, membership(), facts.totalBytes);
      lookedAtMs = nowMs;
    }
    return groups.reduce(withinGroup, facts);
  };
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

interface Group {
  readonly folder: string;
  readonly files: GroupFiles;
}

/** Of cgroups of version 2 and 1: this one and those around it that may have less than the machine. */
function limitedGroups(root: string, membership: string, totalBytes: number): readonly Group[] {
  return versions.flatMap(files => {
    const limited: Group[] = [];
    let path = files.membership.exec(membership)?.groups?.['path'];
    for (let level = 0; path !== undefined && level < levelsMax; level += 1) {
      const folder = join(root, files.folder, path);
      if (Number.parseInt(readText(join(folder, files.limit)), 10) < totalBytes) limited.push({folder, files});
      path = path === '/' ? undefined : dirname(path);
    }
    return limited;
  });
}

/** Cached file pages that are not in use count as free, because the kernel gives them up first. */
function withinGroup(facts: MemoryFacts, {folder, files}: Group): MemoryFacts {
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

/** Empty when there is no such file; found out without an error, which costs more than the look. */
function readText(path: string): string {
  try {
    return existsSync(path) ? readFileSync(path, 'utf8') : '';
  } catch {
    return ''; // gone meanwhile, or not ours to read
  }
}
