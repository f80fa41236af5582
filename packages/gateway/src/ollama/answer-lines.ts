import {Fault} from '@hearsay/core';
import type {ServerEvent} from '../event-stream.ts';
import {isObject, parseObject} from '../json.ts';
import type {JsonObject} from '../json.ts';
import type {Problem} from '../problem.ts';
import {problemFromEvent} from '../upstream-problem.ts';
import type {Form} from './read-request.ts';

export interface AnswerFrame {
  readonly form: Form;
  /** The name as the client wrote it. */
  readonly model: string;
  /** The wall clock, in RFC 3339. */
  readonly stamp: () => string;
  /** Milliseconds since the request came. */
  readonly elapsedMs: () => number;
}

interface ToolCall {
  id: string;
  name: string;
  text: string;
}

/**
 * Turns the events of llama-server, chat, completion or infill, into the objects that Ollama clients read line by
 * line. Tool calls are held back until they are whole, because their arguments are objects here.
 */
export class AnswerLines {
  readonly #frame: AnswerFrame;
  readonly #calls = new Map<number, ToolCall>();
  readonly #logprobsWanted: boolean;
  #timings: JsonObject = {};
  #firstMs: number | undefined;
  #reason: string | undefined;
  #isDone = false;

  constructor(frame: AnswerFrame, logprobsWanted: boolean) {
    this.#frame = frame;
    this.#logprobsWanted = logprobsWanted;
  }

  /** The answer has come to its end, and not just stopped. */
  get isWhole(): boolean {
    return this.#isDone && this.#reason !== undefined;
  }

  /** What can be said after one more event; a problem when the event says that the run failed. */
  add({data}: ServerEvent): readonly JsonObject[] | Problem {
    this.#firstMs ??= this.#frame.elapsedMs();
    if (data === '[DONE]') {
      this.#isDone = true;
      return [];
    }
    const event = parseObject(data);
    if (event === undefined) throw new Fault('ENGINE_FAILED', 'the answer has an event that is not JSON');
    const problem = problemFromEvent(event);
    if (problem) return problem;
    if (isObject(event['timings'])) this.#timings = event['timings'];
    const choice = choiceIn(event);
    if (choice === undefined) return [];
    if (typeof choice.reason === 'string') this.#reason = choice.reason;
    if (choice.isLast) this.#isDone = true;
    for (const [position, call] of choice.calls.entries()) this.#addCall(call, position);
    const logprobs = this.#logprobsWanted ? logprobsIn(choice.logprobs) : undefined;
    if (choice.text === '' && choice.thinking === '') return [];
    return [this.#line(choice.text, choice.thinking, logprobs ? {logprobs} : {})];
  }

  /** What is left to say once the answer is whole: its tool calls, and the line that ends it. */
  finish(): readonly JsonObject[] {
    const calls = [...this.#calls].toSorted(([a], [b]) => a - b).map(([index, call]) => toolCall(index, call));
    const said = calls.length > 0 ? [this.#line('', '', {}, {tool_calls: calls})] : [];
    const reason = this.#reason === 'length' ? 'length' : 'stop';
    return [...said, {...this.#line('', ''), done: true, done_reason: reason, ...this.#durations()}];
  }

  /** Says nothing, and that it is not done: keeps a client waiting. */
  idle(): JsonObject {
    return this.#line('', '');
  }

  #line(text: string, thinking: string, more: JsonObject = {}, inMessage: JsonObject = {}): JsonObject {
    const {form, model, stamp} = this.#frame;
    const thought = thinking === '' ? {} : {thinking};
    const content =
      form === 'chat'
        ? {message: {role: 'assistant', content: text, ...thought, ...inMessage}}
        : {response: text, ...thought, ...inMessage};
    return {model, created_at: stamp(), ...content, ...more, done: false};
  }

  #addCall({index, id, function: called}: JsonObject, position: number): void {
    const key = typeof index === 'number' ? index : position;
    const call = this.#calls.get(key) ?? {id: '', name: '', text: ''};
    this.#calls.set(key, call);
    if (typeof id === 'string' && id !== '') call.id = id;
    if (!isObject(called)) return;
    if (typeof called['name'] === 'string' && called['name'] !== '') call.name = called['name'];
    if (typeof called['arguments'] === 'string') call.text += called['arguments'];
  }

  /** Whole nanoseconds. What passed before the model read its prompt counts as loading. */
  #durations(): JsonObject {
    const {cache_n: cached, prompt_n: prompted, prompt_ms: promptMs} = this.#timings;
    const {predicted_n: made, predicted_ms: madeMs} = this.#timings;
    const totalMs = this.#frame.elapsedMs();
    return {
      total_duration: nanoseconds(totalMs),
      load_duration: nanoseconds(Math.max(0, (this.#firstMs ?? totalMs) - number(promptMs))),
      prompt_eval_count: number(cached) + number(prompted),
      prompt_eval_duration: nanoseconds(number(promptMs)),
      eval_count: number(made),
      eval_duration: nanoseconds(number(madeMs)),
    };
  }
}

interface Piece {
  readonly text: string;
  readonly thinking: string;
  readonly calls: readonly JsonObject[];
  readonly logprobs: unknown;
  readonly reason: unknown;
  /** Native streams have no `[DONE]`: their last event says so itself. */
  readonly isLast: boolean;
}

function choiceIn(event: JsonObject): Piece | undefined {
  if (typeof event['stop'] === 'boolean') {
    const isLast = event['stop'];
    const reason = isLast ? (event['stop_type'] === 'limit' ? 'length' : 'stop') : undefined;
    return {text: textOf(event['content']), thinking: '', calls: [], logprobs: undefined, reason, isLast};
  }
  const choices: readonly unknown[] = Array.isArray(event['choices']) ? event['choices'] : [];
  const [choice] = choices;
  if (!isObject(choice)) return undefined;
  const delta = isObject(choice['delta']) ? choice['delta'] : {};
  return {
    text: textOf(choice['text']) + textOf(delta['content']),
    thinking: textOf(delta['reasoning_content']),
    calls: Array.isArray(delta['tool_calls']) ? delta['tool_calls'].filter(isObject) : [],
    logprobs: choice['logprobs'],
    reason: choice['finish_reason'],
    isLast: false,
  };
}

/** The arguments are parsed, never replaced by an empty object: a tool must not run with less than was meant (C58). */
function toolCall(index: number, {id, name, text}: ToolCall): JsonObject {
  const parsed = text.trim() === '' ? {} : parseObject(text);
  if (parsed === undefined) {
    throw new Fault('ENGINE_FAILED', `the model called the tool ${name} with arguments that are not a JSON object`);
  }
  return {...(id === '' ? {} : {id}), function: {index, name, arguments: parsed}};
}

function logprobsIn(logprobs: unknown): readonly JsonObject[] | undefined {
  const content = isObject(logprobs) ? logprobs['content'] : undefined;
  return Array.isArray(content) ? content.filter(isObject).map(withoutId) : undefined;
}

/** The number of a token is llama-server's own matter. */
function withoutId(entry: JsonObject): JsonObject {
  const {token, logprob, bytes, top_logprobs: top} = entry;
  return {token, logprob, bytes, ...(Array.isArray(top) ? {top_logprobs: top.filter(isObject).map(withoutId)} : {})};
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function number(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}

function nanoseconds(ms: number): number {
  return Math.round(ms * 1_000_000);
}
