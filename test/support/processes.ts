import {readdirSync, readFileSync} from 'node:fs';

/** Processes whose command line holds the text: process ids. Linux only, as the tests that need it. */
export function processesWith(text: string): readonly number[] {
  return readdirSync('/proc').flatMap(entry => {
    if (!/^\d+$/u.test(entry)) return [];
    try {
      const command = readFileSync(`/proc/${entry}/cmdline`, 'utf8').replaceAll('\0', ' ');
      const state = /^State:\s+(\S)/mu.exec(readFileSync(`/proc/${entry}/status`, 'utf8'))?.[1];
      return command.includes(text) && state !== 'Z' ? [Number(entry)] : [];
    } catch {
      return []; // it has ended meanwhile
    }
  });
}

/** Processes that one of these has started, and whose command line holds the text. */
export function childrenWith(text: string, parents: readonly number[]): readonly number[] {
  return processesWith(text).filter(pid => {
    try {
      const parent = /^PPid:\s+(\d+)/mu.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
      return parents.includes(Number(parent));
    } catch {
      return false; // it has ended meanwhile
    }
  });
}
