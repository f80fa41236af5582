import {Fault} from '@hearsay/core';
import type {Ranked} from '@hearsay/core';
import type {LeasedBody} from './leased-body.ts';

/** An engine cannot take in so much at once. */
export interface TooLong {
  readonly fault: Fault;
  /** Whether it may be worth asking this one. */
  readonly mayFit: (other: Ranked) => boolean;
}

/** Pure: whether the answer says that the prompt is longer than that engine can read, and who may read more (R25). */
export function tooLong(status: number, body: LeasedBody, node: Ranked): TooLong | undefined {
  if (status === 400 && body.firstText().includes(tooLongMark)) {
    const most = node.contextTokens ?? 0;
    const fault = new Fault('BAD_REQUEST', `the prompt is longer than the context of ${most} tokens`);
    return {fault, mayFit: ({contextTokens = 0}) => contextTokens > most};
  }
  const tokens = status === 500 ? tooLargeForm.exec(body.firstText())?.[1] : undefined;
  if (tokens === undefined) return undefined;
  // Nodes do not tell the size of their batches, which may differ where the contexts are the same.
  const fault = new Fault('BAD_REQUEST', `the text has ${tokens} tokens, more than ${node.name} reads at once`);
  return {fault, mayFit: ({contextTokens = Infinity}) => contextTokens >= Number(tokens)};
}

/** In the body of a 400 with which llama-server refuses a prompt that is longer than a slot. */
const tooLongMark = '"exceed_context_size_error"';

/** And in its 500 for what is to be embedded or ranked: that must fit into one batch. */
const tooLargeForm = /\((\d+) tokens\) is too large to process/u;
