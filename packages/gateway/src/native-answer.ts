import {Fault} from '@hearsay/core';
import {openAiErrors} from './error-form.ts';
import type {EventTranslator} from './event-reply.ts';
import type {ServerEvent} from './event-stream.ts';
import {isObject, parseObject} from './json.ts';
import type {JsonObject} from './json.ts';
import type {Assembly} from './object-reply.ts';
import type {Problem} from './problem.ts';
import {eventStreamType} from './stream-output.ts';
import {problemFromEvent} from './upstream-problem.ts';

/** What the answer to a native request depends on. */
export interface NativeWish {
  /** How many answers there will be: prompts times wishes for each. Nothing else tells that the stream is whole. */
  readonly answers: number;
  /** Only these fields of the last event are wanted, written as paths: `timings/predicted_n`. None: all. */
  readonly fields: readonly string[];
  /** One object shows the tokens only to those who ask; a stream always does. */
  readonly showsTokens: boolean;
}

/** Passes llama-server's own stream on. It has no end mark: the last event of each answer says `stop`. */
export function nativeTranslator({answers, fields}: NativeWish): EventTranslator {
  let whole = 0;
  return {
    errors: openAiErrors,
    style: {contentType: eventStreamType, keepAlive: () => ': waiting\n\n'},
    translate(event) {
      const piece = pieceOf(event);
      if (piece === undefined) return '';
      const problem = problemFromEvent(piece);
      if (problem) return problem;
      if (piece['stop'] !== true) return eventLine(event.data);
      whole += 1;
      return eventLine(fields.length === 0 ? event.data : JSON.stringify(chosenFields(piece, fields)));
    },
    isWhole: () => whole >= answers,
    failure: (_problem, body) => eventLine(JSON.stringify(body)),
  };
}

/** Puts llama-server's own stream together to what it gives when it is not asked for one. */
export function nativeAssembly({
  answers,
  fields,
  showsTokens,
}: NativeWish): Assembly<JsonObject | readonly JsonObject[]> {
  const parts = new Map<number, NativeAnswer>();
  return {
    errors: openAiErrors,
    take(event) {
      const piece = pieceOf(event);
      return piece && takePiece(parts, piece);
    },
    result() {
      const inOrder = [...parts].toSorted(([a], [b]) => a - b).map(([, part]) => part.result(showsTokens));
      const ended = inOrder.filter(each => each !== undefined);
      if (ended.length < answers) return undefined;
      const shown = ended.map(each => (fields.length === 0 ? each : chosenFields(each, fields)));
      return shown.length === 1 ? shown[0] : shown;
    },
  };
}

function takePiece(parts: Map<number, NativeAnswer>, piece: JsonObject): Problem | undefined {
  const problem = problemFromEvent(piece);
  if (problem) return problem;
  const index = typeof piece['index'] === 'number' ? piece['index'] : 0;
  const part = parts.get(index) ?? new NativeAnswer();
  parts.set(index, part);
  part.add(piece);
  return undefined;
}

/** One of the answers of a stream. */
class NativeAnswer {
  #content = '';
  readonly #tokens: unknown[] = [];
  readonly #probabilities: unknown[] = [];
  #last: JsonObject | undefined;

  add(piece: JsonObject): void {
    const {content, tokens, completion_probabilities: probabilities} = piece;
    if (typeof content === 'string') this.#content += content;
    if (Array.isArray(tokens)) this.#tokens.push(...tokens);
    if (Array.isArray(probabilities)) this.#probabilities.push(...probabilities);
    if (piece['stop'] === true) this.#last = piece;
  }

  /** Undefined while its last piece has not come. */
  result(showsTokens: boolean): JsonObject | undefined {
    if (this.#last === undefined) return undefined;
    const {generation_settings: settings} = this.#last;
    return {
      ...this.#last,
      content: this.#content,
      tokens: showsTokens ? this.#tokens : [],
      ...(isObject(settings) ? {generation_settings: {...settings, stream: false}} : {}), // as the client wanted it
      ...(this.#probabilities.length > 0 ? {completion_probabilities: this.#probabilities} : {}),
    };
  }
}

/** Undefined: llama-server writes `null` where an answer begins, as a sign of life. */
function pieceOf({data}: ServerEvent): JsonObject | undefined {
  if (data === 'null') return undefined;
  const piece = parseObject(data);
  if (piece === undefined) throw new Fault('ENGINE_FAILED', 'the answer has an event that is not JSON');
  return piece;
}

/** Paths that lead nowhere are left out, as llama-server does. */
function chosenFields(answer: JsonObject, paths: readonly string[]): JsonObject {
  const found = paths.map(path => [path, path.split('/').reduce<unknown>(valueAt, answer)] as const);
  return Object.fromEntries(found.filter(([, value]) => value !== undefined));
}

function valueAt(from: unknown, name: string): unknown {
  return isObject(from) && Object.hasOwn(from, name) ? from[name] : undefined;
}

function eventLine(data: string): string {
  return `data: ${data}\n\n`;
}
