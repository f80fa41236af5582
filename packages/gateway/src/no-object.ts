import {describeError} from '@hearsay/core';
import {badRequest} from './problem.ts';
import type {Problem} from './problem.ts';

/** Pure: what is wrong with a body that should have been a JSON object and is not. */
export function noObject(bytes: Uint8Array): Problem {
  const why = bytes.length === 0 ? 'it is empty' : whyNoJson(bytes);
  return badRequest(`the body is not a JSON object${why === undefined ? '' : `: ${why}`}`);
}

/** In the parser's words, without what it quotes of the prompt. */
function whyNoJson(bytes: Uint8Array): string | undefined {
  try {
    JSON.parse(new TextDecoder().decode(bytes));
    return undefined;
  } catch (error) {
    return describeError(error)
      .replace(/, (?:\.\.\.)?".*$/su, '')
      .replace(/ in JSON(?= at )/u, '');
  }
}
