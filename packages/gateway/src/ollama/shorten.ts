import {isObject} from '../json.ts';
import type {JsonObject} from '../json.ts';
import type {Problem} from '../problem.ts';

/** How often one conversation is made shorter: the estimate by length is seldom wrong twice. */
export const shorteningsMax: number = 4;

/** Share of the context that is left for the answer and for the error of the estimate. */
const spareShare = 0.15;

/**
 * Pure: a conversation without its oldest messages, for a context that it did not fit into; undefined when nothing is
 * left to leave out, or the problem is another one. System messages and the last message always stay, and an answer
 * of a tool goes with its call.
 */
export function shorten(body: JsonObject, {code, extra}: Problem): JsonObject | undefined {
  const {messages} = body;
  const {n_prompt_tokens: tokens, n_ctx: context} = extra ?? {};
  if (code !== 'context_length_exceeded' || !Array.isArray(messages)) return undefined;
  const list: readonly unknown[] = messages;
  const share = typeof tokens === 'number' && typeof context === 'number' ? (1 - spareShare) * (context / tokens) : 0.5;
  const wanted = sum(list.map(lengthOf)) * Math.min(share, 1 - spareShare);
  const kept = new Set(list.keys());
  let length = sum(list.map(lengthOf));
  for (const [index, message] of list.entries()) {
    const isOrphan = isRole(message, 'tool') && index > 0 && !kept.has(index - 1);
    const stays = index === list.length - 1 || isRole(message, 'system');
    if (stays || (length <= wanted && !isOrphan)) continue;
    kept.delete(index);
    length -= lengthOf(message);
  }
  return kept.size === list.length ? undefined : {...body, messages: list.filter((_, index) => kept.has(index))};
}

function isRole(message: unknown, role: string): boolean {
  return isObject(message) && message['role'] === role;
}

function lengthOf(message: unknown): number {
  return JSON.stringify(message).length;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
