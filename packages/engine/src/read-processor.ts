import {arch, availableParallelism, cpus} from 'node:os';
import type {ProcessorFacts} from '@hearsay/core';

/** What the system says of its processor; in a container of the part that it may use. */
export function readProcessor(): ProcessorFacts {
  const [first] = cpus();
  return {
    model: first?.model ?? '',
    threads: availableParallelism(),
    megahertz: first?.speed ?? 0,
    architecture: arch(),
  };
}
