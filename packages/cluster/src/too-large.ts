import {Fault, formatBytes} from '@hearsay/core';
import type {Ranked} from '@hearsay/core';

/** A node that was asked and said that the model does not fit there. */
interface TooLargeThere {
  readonly name: string;
  readonly reason: string;
}

/**
 * The answer for a model that fits no node: how much is missing where, and what can be done. Undefined when memory is
 * not what keeps it from running.
 */
export function tooLargeEverywhere(
  model: string,
  ranked: readonly Ranked[],
  refusals: readonly TooLargeThere[],
): Fault | undefined {
  const small = ranked.filter(({exclusion}) => exclusion === 'too large');
  const lacks = [
    ...refusals.map(({name, reason}) => `${name}: ${reason}`),
    ...small.map(
      ({name, missingBytes = 0}) => `${name}: ${formatBytes(missingBytes)} are missing even without any other model`,
    ),
  ];
  if (lacks.length === 0) return undefined;
  const help =
    'Take a smaller quantization, raise engine.memory where it is set to less than the machine has, or run it over ' +
    "several machines with llama.cpp's rpc-server, which hearsay does not manage";
  return new Fault('NO_CANDIDATE', `${model || 'the model'} fits on no node. ${lacks.join('; ')}. ${help}.`, {
    details: {lacks, retryable: false},
  });
}
