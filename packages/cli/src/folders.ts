import {join} from 'node:path';
import type {Variables} from './system.ts';

/** Where hearsay keeps its files unless told otherwise: the XDG folders, on every system. */
export interface StandardFolders {
  readonly config: string;
  readonly data: string;
  readonly cache: string;
}

export function standardFolders(variables: Variables, home: string): StandardFolders {
  return {
    config: join(variables['XDG_CONFIG_HOME'] || join(home, '.config'), 'hearsay'),
    data: join(variables['XDG_DATA_HOME'] || join(home, '.local', 'share'), 'hearsay'),
    cache: join(variables['XDG_CACHE_HOME'] || join(home, '.cache'), 'hearsay'),
  };
}
