import {Fault} from '@hearsay/core';
import {anthropicErrors} from './error-form.ts';
import {isObject, parseObject} from './json.ts';
import type {JsonObject} from './json.ts';
import {messageHead} from './messages-stream.ts';
import type {Assembly} from './object-reply.ts';
import {problemFromErrorEvent} from './upstream-problem.ts';

interface Block {
  readonly fields: Record<string, unknown>;
  /** Pieces of a tool's input. */
  input: string;
}

/** The events of one Anthropic message, put together to the message. */
export function messagesAssembly(model: string): Assembly {
  const blocks = new Map<number, Block>();
  let message: JsonObject = {};
  let usage: JsonObject = {};
  let isWhole = false;

  function take(event: JsonObject): void {
    const {type, index, content_block: start, delta} = event;
    const at = typeof index === 'number' ? index : 0;
    if (type === 'message_start' && isObject(event['message'])) message = messageHead(event['message'], model);
    if (isObject(event['usage'])) usage = {...usage, ...event['usage']};
    if (type === 'message_delta' && isObject(delta)) message = {...message, ...delta};
    if (type === 'content_block_start' && isObject(start)) blocks.set(at, {fields: {...start}, input: ''});
    const block = blocks.get(at);
    if (type === 'content_block_delta' && isObject(delta) && block) extend(block, delta);
  }

  return {
    errors: anthropicErrors,
    take(event) {
      const problem = problemFromErrorEvent(event);
      if (problem) return problem;
      if (event.name === 'message_stop') isWhole = true;
      const parsed = parseObject(event.data);
      if (parsed === undefined) throw new Fault('ENGINE_FAILED', 'the answer has an event that is not JSON');
      take(parsed);
      return undefined;
    },
    result() {
      if (!isWhole) return undefined;
      const wasCut = message['stop_reason'] === 'max_tokens';
      const ordered = [...blocks].toSorted(([a], [b]) => a - b);
      const content = ordered.flatMap(([, block]) => finish(block, wasCut));
      const before = isObject(message['usage']) ? message['usage'] : {};
      return {...message, content, usage: {...before, ...usage}};
    },
  };
}

/** Deltas carry their text under the name of the field that it continues. */
function extend(block: Block, delta: JsonObject): void {
  const {fields} = block;
  for (const name of ['text', 'thinking', 'signature']) {
    const piece = delta[name];
    if (typeof piece !== 'string') continue;
    const known = fields[name];
    fields[name] = typeof known === 'string' ? known + piece : piece;
  }
  if (typeof delta['partial_json'] === 'string') block.input += delta['partial_json'];
}

/**
 * A tool's input is an object here. One that was cut off by the token limit is left out with its call, because nobody
 * must run half a command (R18); any other that cannot be parsed is a failure (C58).
 */
function finish({fields, input}: Block, wasCut: boolean): readonly JsonObject[] {
  if (fields['type'] !== 'tool_use') return [fields];
  const parsed = input.trim() === '' ? {} : parseObject(input);
  if (parsed) return [{...fields, input: parsed}];
  if (wasCut) return [];
  throw new Fault('ENGINE_FAILED', `the model called ${String(fields['name'])} with arguments that are not JSON`);
}
