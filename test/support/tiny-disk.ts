import {spawnSync} from 'node:child_process';
import {mkdtemp, rm} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import type {ExecutionContext} from 'ava';

/** Why this machine cannot make one; undefined when it can. */
export function whyNoTinyDisk(): string | undefined {
  if (process.platform !== 'linux') return 'only Linux has tmpfs';
  return process.getuid?.() === 0 ? undefined : 'it takes root to mount';
}

/** A file system of its own with room for so much; gone with the test. */
export async function tinyDisk(t: Pick<ExecutionContext, 'teardown'>, kilobytes: number): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-disk-'));
  const {status, stderr} = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${kilobytes}k`, 'tiny', folder]);
  t.teardown(async () => {
    spawnSync('umount', ['-l', folder]);
    await rm(folder, {recursive: true, force: true});
  });
  if (status !== 0) throw new Error(`mount: ${stderr.toString()}`);
  return folder;
}
