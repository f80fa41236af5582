import {anthropicErrors} from './error-form.ts';
import {eventText} from './event-reply.ts';
import type {EventTranslator} from './event-reply.ts';
import type {ServerEvent} from './event-stream.ts';
import {isObject, parseObject} from './json.ts';
import type {JsonObject} from './json.ts';
import type {Problem} from './problem.ts';
import {eventStreamType} from './stream-output.ts';
import {problemFromErrorEvent} from './upstream-problem.ts';

/**
 * Anthropic's stream, which llama-server speaks except for some details (facts: client-apis §3): blocks must end before
 * the next one begins, a tool's block begins with an empty input, and errors have a shape of their own. Pieces of text
 * pass as they are.
 */
export function messagesTranslator(model: string): EventTranslator {
  const blocks = new OpenBlock();
  let isWhole = false;
  return {
    errors: anthropicErrors,
    style: {contentType: eventStreamType, keepAlive: () => eventText('ping', '{"type":"ping"}')},
    translate: event => {
      const {name, data} = event;
      const problem = problemFromErrorEvent(event);
      if (problem) return problem;
      if (name === 'message_stop') isWhole = true;
      if (name === 'message_start') return eventText(name, JSON.stringify(startOfMessage(data, model)));
      return name.startsWith('content_block_') ? blocks.pass(event) : eventText(name, data);
    },
    isWhole: () => isWhole,
    failure: (_problem: Problem, body: JsonObject) => eventText('error', JSON.stringify(body)),
  };
}

/** Pure: the head of the message, under the name that was asked for and with an id that looks like one. */
function startOfMessage(data: string, model: string): JsonObject {
  const event = parseObject(data) ?? {};
  const message = isObject(event['message']) ? event['message'] : {};
  return {...event, message: messageHead(message, model)};
}

/** Pure: as `startOfMessage`, for the message itself. */
export function messageHead(message: JsonObject, model: string): JsonObject {
  const {id} = message;
  const named = model === '' ? {} : {model};
  return {...message, ...named, id: typeof id === 'string' ? id.replace(/^chatcmpl-/u, 'msg_') : 'msg_0'};
}

/**
 * Keeps one block open at a time. llama-server ends a block of thinking only at the very end; here it ends when the
 * next one begins, and its own end is dropped.
 */
class OpenBlock {
  #index: number | undefined;
  #isThinking = false;
  #lastClosed = -1;

  pass({name, data}: ServerEvent): string {
    switch (name) {
      case 'content_block_start':
        return this.#start(data);
      case 'content_block_stop': {
        const index = indexIn(parseObject(data));
        return index <= this.#lastClosed ? '' : this.#close(eventText(name, data), index);
      }
      case 'content_block_delta':
        // In a model's own words the quotation marks would be escaped.
        if (data.includes('"signature_delta"') && indexIn(parseObject(data)) <= this.#lastClosed) return '';
        return eventText(name, data);
      default:
        return eventText(name, data);
    }
  }

  #start(data: string): string {
    const event = parseObject(data) ?? {};
    const block = isObject(event['content_block']) ? event['content_block'] : {};
    const before = this.#index === undefined ? '' : this.#closeEarly(this.#index);
    this.#index = indexIn(event);
    this.#isThinking = block['type'] === 'thinking';
    const whole = block['type'] === 'tool_use' ? {...event, content_block: {input: {}, ...block}} : event;
    return before + eventText('content_block_start', JSON.stringify(whole));
  }

  #closeEarly(index: number): string {
    const signature = {type: 'content_block_delta', index, delta: {type: 'signature_delta', signature: ''}};
    const stop = eventText('content_block_stop', JSON.stringify({type: 'content_block_stop', index}));
    const signed = this.#isThinking ? eventText('content_block_delta', JSON.stringify(signature)) : '';
    return this.#close(signed + stop, index);
  }

  #close(text: string, index: number): string {
    this.#lastClosed = Math.max(this.#lastClosed, index);
    this.#index = undefined;
    return text;
  }
}

function indexIn(event: JsonObject | undefined): number {
  const index = event?.['index'];
  return typeof index === 'number' ? index : 0;
}
