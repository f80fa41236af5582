import type {RunFacts} from '@hearsay/core';
import type {Problem} from './problem.ts';
import {remembered} from './remembered.ts';

/**
 * One client's answer, in the form it asked for. Ends exactly once: by `end` or by `fail`; what comes after is
 * ignored.
 */
export interface Reply extends Disposable {
  /** The head of the answer has come; its status is 200. */
  begin?: (contentType: string) => void;
  /** Takes bytes of the answer; false when no more is wanted, a promise while the client must catch up. */
  write(chunk: Uint8Array): boolean | Promise<boolean>;
  /** The end mark has come, although the body has not ended: what breaks now takes nothing from the client. */
  isWhole?(): boolean;
  /** The body ended; the reply judges whether it is whole. */
  end(): void;
  fail(problem: Problem): void;
}

/** Longest text of a header that is made for people. */
const headerTextMax = 200;

/** Pure: what ran, as headers (S81). */
export function runHeaders(run: RunFacts): Readonly<Record<string, string>> {
  return {
    'x-hearsay-node': headerText(run.nodeName),
    'x-hearsay-model': headerText(run.digest),
    'x-hearsay-attempts': String(run.attempts),
    'x-hearsay-policy': headerText(run.policy),
    'x-hearsay-reason': headerText(run.reason),
  };
}

/** Names of nodes may be in any script, headers may not: other letters are written as in a URL, `K%C3%BCche`. */
const headerText = remembered(text =>
  text
    .toWellFormed()
    .slice(0, headerTextMax)
    .toWellFormed()
    .replaceAll(/[^\x20-\x24\x26-\x7e]/gu, encodeURIComponent)
    .trim(),
);

/** What a header says: clients send other letters as they are, in UTF-8, or as in a URL. */
export function textOfHeader(value: string): string {
  try {
    const text = new TextDecoder('utf-8', {fatal: true}).decode(Buffer.from(value, 'latin1'));
    return decodeURIComponent(text);
  } catch {
    return value; // neither: then it is meant as it stands
  }
}

/** The answer stopped before it was whole, and nobody said why. */
export const truncated: Problem = {
  kind: 'problem',
  status: 502,
  type: 'server_error',
  code: 'stream_truncated',
  message: 'the answer stopped before its end; what came so far is incomplete',
};
