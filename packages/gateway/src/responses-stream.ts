import {Fault} from '@hearsay/core';
import {openAiErrors} from './error-form.ts';
import {eventText} from './event-reply.ts';
import type {EventTranslator} from './event-reply.ts';
import type {ServerEvent} from './event-stream.ts';
import {isAbsent, isObject, parseObject} from './json.ts';
import type {JsonObject} from './json.ts';
import type {Assembly} from './object-reply.ts';
import type {Situation} from './operation.ts';
import {eventStreamType} from './stream-output.ts';
import {problemFromErrorEvent} from './upstream-problem.ts';

/** What is known of a response before the engine has said anything. */
interface Origin extends Pick<Situation, 'contextOfRun'> {
  readonly id: string;
  readonly atSeconds: number;
  readonly nowSeconds: () => number;
}

/**
 * The events of a response. llama-server sends the right ones in the right order, but leaves out the numbers by which
 * clients put them together, and most of what a response says of itself (facts: client-apis §2.4).
 */
export function responsesTranslator(asked: JsonObject, origin: Origin): EventTranslator {
  const whole = new ResponseFields(asked, origin);
  const items = new Map<string, number>();
  const reasoned = new Set<unknown>();
  let sequence = 0;
  let isWhole = false;
  let done: JsonObject | undefined;

  function write(name: string, fields: JsonObject): string {
    const numbered = {...fields, type: name, sequence_number: sequence};
    sequence += 1;
    return eventText(name, JSON.stringify(numbered));
  }

  function place(id: unknown): JsonObject {
    const key = typeof id === 'string' ? id : '';
    const index = items.get(key) ?? items.size;
    items.set(key, index);
    return {output_index: index};
  }

  function pass(name: string, event: JsonObject): string {
    const {response} = event;
    if (isObject(response)) {
      const filled = whole.fill(response);
      const isCut = filled['status'] === 'incomplete';
      return lastItem(isCut) + write(isCut ? 'response.incomplete' : name, {...event, response: filled});
    }
    return lastItem(false) + passInside(name, event);
  }

  /** Whether an item was cut is told by the end of the response, for which the last one waits. */
  function lastItem(isCut: boolean): string {
    const event = done;
    done = undefined;
    if (event === undefined) return '';
    const cut = isCut && isObject(event['item']) ? {item: {...event['item'], status: 'incomplete'}} : {};
    return write('response.output_item.done', {...event, ...cut});
  }

  function passInside(name: string, event: JsonObject): string {
    const {item, item_id: itemId} = event;
    if (isObject(item)) {
      const placed = {...event, ...place(item['id'])};
      if (name !== 'response.output_item.done') return write(name, placed);
      done = {...placed, item: settledItem(item)};
      return beforeItemDone(item);
    }
    if (itemId === undefined) return write(name, event);
    const opened = name === 'response.reasoning_text.delta' ? openReasoning(itemId) : '';
    const part = inPart.test(name) ? {content_index: 0} : {};
    const chances = name.startsWith('response.output_text.') ? {logprobs: []} : {};
    return opened + write(name, {...part, ...chances, ...event, ...place(itemId)});
  }

  /** Clients keep a text only where its part has been announced; llama-server announces none for reasoning. */
  function openReasoning(id: unknown): string {
    if (reasoned.has(id)) return '';
    reasoned.add(id);
    const part = {type: 'reasoning_text', text: ''};
    return write('response.content_part.added', {item_id: id, content_index: 0, part, ...place(id)});
  }

  /** What clients may wait for before an item is done: the whole arguments of a tool, the whole reasoning. */
  function beforeItemDone(item: JsonObject): string {
    const {id, type, name: tool, arguments: text, content} = item;
    const common = {item_id: id, ...place(id)};
    if (type === 'function_call') {
      return write('response.function_call_arguments.done', {...common, name: tool, arguments: text});
    }
    const part: unknown = type === 'reasoning' && Array.isArray(content) ? content[0] : undefined;
    if (!isObject(part) || !reasoned.has(id)) return '';
    const inPlace = {...common, content_index: 0};
    return (
      write('response.reasoning_text.done', {...inPlace, text: part['text']}) +
      write('response.content_part.done', {...inPlace, part})
    );
  }

  return {
    errors: openAiErrors,
    style: {contentType: eventStreamType, keepAlive: () => ': waiting\n\n'},
    translate(event) {
      const problem = problemFromErrorEvent(event);
      if (problem) return problem;
      if (event.name === 'response.completed') isWhole = true;
      return pass(event.name, parse(event));
    },
    isWhole: () => isWhole,
    // Some clients know no other sign of a failure (C51).
    failure: ({code, message}) => lastItem(false) + write('response.failed', {response: whole.failed({code, message})}),
  };
}

/** The response that a stream of events ends with. */
export function responsesAssembly(asked: JsonObject, origin: Origin): Assembly {
  const whole = new ResponseFields(asked, origin);
  let result: JsonObject | undefined;
  return {
    errors: openAiErrors,
    take(event) {
      const problem = problemFromErrorEvent(event);
      const {response} = problem ? {} : parse(event);
      if (event.name === 'response.completed' && isObject(response)) result = whole.fill(response);
      return problem;
    },
    result: () => result,
  };
}

/** Events about a part of an item, of which an item has one here. */
const inPart = /^response\.(?:content_part|output_text|reasoning_text)\./u;

/** What a response says of itself: what was asked, what the engine told last, and what clients take for granted. */
class ResponseFields {
  readonly #asked: JsonObject;
  readonly #contextOfRun: Situation['contextOfRun'];
  readonly #nowSeconds: () => number;
  #known: JsonObject;

  constructor(asked: JsonObject, {id, atSeconds, nowSeconds, contextOfRun}: Origin) {
    this.#asked = asked;
    this.#contextOfRun = contextOfRun;
    this.#nowSeconds = nowSeconds;
    this.#known = {id: `resp_${id}`, object: 'response', created_at: atSeconds, status: 'in_progress'};
  }

  fill(response: JsonObject): JsonObject {
    this.#known = {...this.#known, ...response};
    const {usage, output, status} = this.#known;
    return this.#describe({
      ...this.#known,
      ...(status === 'completed' ? this.#end(usage, output) : {}),
      usage: usageOf(usage),
    });
  }

  #end(usage: unknown, output: unknown): JsonObject {
    const items = settled(output);
    if (!isOfLlama(this.#asked) && this.#isCut(usage)) return incomplete(items);
    return {completed_at: this.#known['completed_at'] ?? this.#nowSeconds(), output: items};
  }

  /**
   * llama-server calls every end completed, and tells of none why it came. Its counts do: whoever used up what was
   * asked for, or exactly all that the engine can hold, was cut there. One that would have ended there by itself looks
   * the same; one that holds more forgets what came first, or its context was a guess.
   */
  #isCut(usage: unknown): boolean {
    const {output_tokens: written, total_tokens: held} = isObject(usage) ? usage : {};
    return isAtLeast(written, this.#asked['max_output_tokens']) || (isCount(held) && held === this.#contextOfRun());
  }

  failed(error: JsonObject): JsonObject {
    return this.#describe({...this.#known, status: 'failed', error});
  }

  #describe(fields: JsonObject): JsonObject {
    const {model, ...asked} = this.#asked;
    const echoed = Object.entries(asked).filter(([name, value]) => echoes.has(name) && !isAbsent(value));
    const said = {...usual, ...Object.fromEntries(echoed), text: textOf(asked)};
    return {...said, ...fields, ...(typeof model === 'string' ? {model} : {})};
  }
}

/** Only clients of llama-server's own ask for these, and they wait for `response.completed` however it ends. */
function isOfLlama({timings_per_token: times, return_progress: progress}: JsonObject): boolean {
  return times === true || progress === true;
}

/** A limit below nothing is none. */
function isAtLeast(count: unknown, limit: unknown): boolean {
  return isCount(count) && isCount(limit) && count >= limit;
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && value >= 0;
}

/** llama-server says of a reasoning that it is done, and when a response was, only to who does not stream. */
function settled(output: unknown): readonly unknown[] {
  const items: readonly unknown[] = Array.isArray(output) ? output : [];
  return items.map(item => (isObject(item) ? settledItem(item) : item));
}

function settledItem(item: JsonObject): JsonObject {
  return {status: 'completed', ...item};
}

/** The last item is the one that was cut. OpenAI gives this reason for a full context too. */
function incomplete(items: readonly unknown[]): JsonObject {
  const last = items.at(-1);
  return {
    status: 'incomplete',
    incomplete_details: {reason: 'max_output_tokens'},
    output: isObject(last) ? [...items.slice(0, -1), {...last, status: 'incomplete'}] : items,
  };
}

const usual: JsonObject = {
  completed_at: null,
  error: null,
  incomplete_details: null,
  instructions: null,
  max_output_tokens: null,
  metadata: {},
  output: [],
  parallel_tool_calls: true,
  previous_response_id: null,
  reasoning: {effort: null, summary: null},
  store: false,
  temperature: null,
  tool_choice: 'auto',
  tools: [],
  top_p: null,
  truncation: 'disabled',
  usage: null,
};

/** Fields of the request that a response repeats. */
const echoes: ReadonlySet<string> = new Set([
  'instructions',
  'max_output_tokens',
  'metadata',
  'parallel_tool_calls',
  'reasoning',
  'temperature',
  'tool_choice',
  'tools',
  'top_p',
]);

/** What the text shall be like, with the usual form where none is asked for. */
function textOf({text}: JsonObject): JsonObject {
  const {format, ...others} = isObject(text) ? text : {};
  return {format: format ?? {type: 'text'}, ...others};
}

function usageOf(usage: unknown): JsonObject | null {
  return isObject(usage) ? {output_tokens_details: {reasoning_tokens: 0}, ...usage} : null;
}

function parse({data}: ServerEvent): JsonObject {
  const event = parseObject(data);
  if (event === undefined) throw new Fault('ENGINE_FAILED', 'the answer has an event that is not JSON');
  return event;
}
