import {spawnSync} from 'node:child_process';
import {closeSync, constants, openSync} from 'node:fs';

/** A folder of whose files nobody ever hears, as of a network drive that is away. */
export interface HangingMount extends Disposable {
  /** Lets go: all calls end with an error. */
  readonly [Symbol.dispose]: () => void;
}

/** Why this machine cannot make one; undefined when it can. */
export function whyNoHangingMount(): string | undefined {
  if (process.platform !== 'linux') return 'only Linux has /dev/fuse';
  if (process.getuid?.() !== 0) return 'it takes root to mount';
  try {
    closeSync(openSync('/dev/fuse', constants.O_RDWR));
    return undefined;
  } catch {
    return 'there is no /dev/fuse';
  }
}

/** The kernel asks whoever holds the other end of /dev/fuse about every file there; this one never answers. */
export function hangingMount(folder: string): HangingMount {
  const fuse = openSync('/dev/fuse', constants.O_RDWR);
  const options = 'fd=3,rootmode=40000,user_id=0,group_id=0,allow_other';
  const stdio: (number | 'ignore' | 'pipe')[] = ['ignore', 'ignore', 'pipe', fuse];
  const {status, stderr} = spawnSync('mount', ['-i', '-t', 'fuse', '-o', options, 'away', folder], {stdio});
  if (status !== 0) {
    closeSync(fuse);
    throw new Error(`mount: ${stderr.toString()}`);
  }
  let isOpen = true;
  return {
    [Symbol.dispose]: () => {
      if (!isOpen) return;
      isOpen = false;
      closeSync(fuse);
      spawnSync('umount', ['-l', folder]);
    },
  };
}
