import {isObject} from '../json.ts';
import type {JsonObject} from '../json.ts';

/** Texts that are continued from line to line, and lists that grow. */
const continued: ReadonlySet<string> = new Set(['content', 'response', 'thinking']);
const growing: ReadonlySet<string> = new Set(['tool_calls', 'logprobs']);

/** Pure: one more line of an answer put to those before it, for clients that want one object. */
export function joinLines(before: JsonObject | undefined, line: JsonObject): JsonObject {
  if (before === undefined) return line;
  const joined: Record<string, unknown> = {...before};
  for (const [name, value] of Object.entries(line)) {
    const known = joined[name];
    if (continued.has(name) && typeof known === 'string' && typeof value === 'string') joined[name] = known + value;
    else if (growing.has(name) && Array.isArray(known) && Array.isArray(value)) joined[name] = [...known, ...value];
    else if (name === 'message' && isObject(known) && isObject(value)) joined[name] = joinLines(known, value);
    else joined[name] = value;
  }
  return joined;
}
