import {readFile} from 'node:fs/promises';
import {hasCode} from '@hearsay/core';
import type {TextStore} from '@hearsay/core';
import {writeWhole} from './write-whole.ts';

/** One text in one file: whole or not at all. */
export function fileStore(path: string): TextStore {
  return {
    async read() {
      try {
        return await readFile(path, 'utf8');
      } catch (error) {
        if (hasCode(error, 'ENOENT')) return undefined;
        throw error;
      }
    },
    write: text => writeWhole(path, `${text}\n`),
  };
}
