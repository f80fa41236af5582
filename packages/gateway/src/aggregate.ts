import type {Endpoint} from '@hearsay/core';
import {isObject} from './json.ts';
import type {JsonObject} from './json.ts';

/** Deltas whose text is continued by the next one; every other field of a delta stands for itself. */
const continued: ReadonlySet<string> = new Set(['content', 'reasoning_content', 'reasoning', 'refusal']);

type Fields = Record<string, unknown>;

interface Choice {
  fields: Fields;
  message: Fields;
  toolCalls: Map<number, Fields>;
}

/**
 * Puts the chunks of a streamed answer together to the one object that a client gets who did not ask for a stream: all
 * choices, tool calls by index, log probabilities, usage, and whatever else the last chunks said.
 */
export class Aggregate {
  readonly #isChat: boolean;
  readonly #answersPerPrompt: number;
  readonly #begun: string;
  readonly #choices = new Map<number, Choice>();
  #fields: Fields = {};
  readonly #usage = new Usage();

  /** `begun`: what llama-server repeats at the head of one object, and leaves out of a stream. */
  constructor(endpoint: Endpoint, answersPerPrompt = 1, begun = '') {
    this.#isChat = endpoint === '/v1/chat/completions';
    this.#answersPerPrompt = answersPerPrompt;
    this.#begun = begun;
  }

  add(chunk: JsonObject): void {
    const {choices, usage, prompt_progress: _, ...fields} = chunk;
    this.#fields = {...this.#fields, ...fields};
    if (isObject(usage)) this.#usage.add(usage);
    for (const [position, choice] of objectsIn(choices).entries()) this.#addChoice(choice, position);
  }

  result(): JsonObject {
    const {id, created, model, __verbose: verbose, ...rest} = this.#fields;
    const usage = this.#usage.total(this.#choices.size, this.#answersPerPrompt);
    return {
      ...rest,
      ...(usage ? {usage} : {}),
      ...(isObject(verbose) ? {__verbose: this.#whole(verbose)} : {}),
      id,
      object: this.#isChat ? 'chat.completion' : 'text_completion',
      created,
      model,
      choices: [...this.#choices].toSorted(([a], [b]) => a - b).map(([index, choice]) => this.#finish(index, choice)),
    };
  }

  /** What llama-server says for debugging has the text only when it does not stream. */
  #whole(verbose: JsonObject): JsonObject {
    const {generation_settings: settings} = verbose;
    const message = this.#choices.get(0)?.message;
    return {
      ...verbose,
      content: message?.['content'] ?? message?.['text'] ?? '',
      ...(isObject(settings) ? {generation_settings: {...settings, stream: false}} : {}),
    };
  }

  #addChoice(piece: JsonObject, position: number): void {
    const {index, delta, text, logprobs, finish_reason: reason, ...fields} = piece;
    const choice = entry(this.#choices, typeof index === 'number' ? index : position, newChoice);
    Object.assign(choice.fields, fields);
    if (typeof reason === 'string') choice.fields['finish_reason'] = reason;
    if (isObject(logprobs)) choice.fields['logprobs'] = joinLogprobs(choice.fields['logprobs'], logprobs);
    if (typeof text === 'string') choice.message['text'] = joinText(choice.message['text'], text);
    if (isObject(delta)) addDelta(choice, delta);
  }

  #finish(index: number, {fields, message, toolCalls}: Choice): JsonObject {
    const basis = {
      ...fields,
      index,
      logprobs: fields['logprobs'] ?? null,
      finish_reason: fields['finish_reason'] ?? null,
    };
    if (!this.#isChat) return {...basis, text: message['text'] ?? ''};
    const calls = [...toolCalls].toSorted(([a], [b]) => a - b).map(([, call]) => call);
    const content = message['content'] ?? (calls.length > 0 ? null : '');
    return {
      ...basis,
      message: {
        role: 'assistant',
        ...message,
        content: this.#withBeginning(content),
        ...(calls.length > 0 ? {tool_calls: calls} : {}),
      },
    };
  }

  /** With what the client had begun, unless it is there. Other engines, which tell no times, do not repeat it. */
  #withBeginning(content: unknown): unknown {
    if (this.#begun === '' || !isObject(this.#fields['timings'])) return content;
    const text = typeof content === 'string' ? content : '';
    return text.startsWith(this.#begun) ? text : this.#begun + text;
  }
}

/** Each of several answers says what it used; the client is told what all of them did. */
class Usage {
  #last: JsonObject | undefined;
  #count = 0;
  #prompt = 0;
  #completion = 0;

  add(part: JsonObject): void {
    this.#last = part;
    this.#count += 1;
    this.#prompt += numberIn(part['prompt_tokens']);
    this.#completion += numberIn(part['completion_tokens']);
  }

  /** Answers to one prompt read it once. Where it is not said once for each answer, the last word holds. */
  total(answers: number, answersPerPrompt: number): JsonObject | undefined {
    if (answers === 1 || this.#count !== answers) return this.#last;
    const [prompt, completion] = [Math.round(this.#prompt / answersPerPrompt), this.#completion];
    return {...this.#last, prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion};
  }
}

function numberIn(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}

function addDelta({message, toolCalls}: Choice, delta: JsonObject): void {
  const {tool_calls: calls, ...fields} = delta;
  for (const [name, value] of Object.entries(fields)) {
    if (value === null || value === undefined) continue;
    message[name] = continued.has(name) && typeof value === 'string' ? joinText(message[name], value) : value;
  }
  for (const [position, piece] of objectsIn(calls).entries()) {
    const {index, function: called, ...rest} = piece;
    const call = entry(toolCalls, typeof index === 'number' ? index : position, newToolCall);
    Object.assign(call, withoutEmpty(rest));
    if (isObject(called)) call['function'] = joinFunction(call['function'], called);
  }
}

/** The arguments come in pieces; the name comes once and may be followed by empty ones. */
function joinFunction(before: unknown, piece: JsonObject): Fields {
  const {arguments: text, ...rest} = piece;
  const joined: Fields = {...(isObject(before) ? before : {}), ...withoutEmpty(rest)};
  joined['arguments'] = joinText(joined['arguments'], typeof text === 'string' ? text : '');
  return joined;
}

/** Lists (per token) are continued, in chat's form and in the older one of text completions. */
function joinLogprobs(before: unknown, piece: JsonObject): Fields {
  const joined: Fields = isObject(before) ? {...before} : {};
  for (const [name, value] of Object.entries(piece)) {
    const known = joined[name];
    if (!Array.isArray(value)) joined[name] = value ?? known ?? null;
    else if (Array.isArray(known)) known.push(...value);
    else joined[name] = [...value];
  }
  return joined;
}

function joinText(before: unknown, piece: string): string {
  return typeof before === 'string' ? before + piece : piece;
}

function objectsIn(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

function withoutEmpty(fields: JsonObject): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== ''));
}

function entry<T>(map: Map<number, T>, key: number, make: () => T): T {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}

function newChoice(): Choice {
  return {fields: {}, message: {}, toolCalls: new Map()};
}

function newToolCall(): Fields {
  return {type: 'function'};
}
