import {systemClock, systemRandom} from '@hearsay/cli';
import type {Environment} from '@hearsay/core';

/** Real time and chance, and a log that nobody reads. */
export function realEnvironment(): Environment {
  return {clock: systemClock, random: systemRandom, log: () => {}};
}
