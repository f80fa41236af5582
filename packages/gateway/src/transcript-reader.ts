import type {ServerEvent} from './event-stream.ts';
import {isObject, parseObject} from './json.ts';
import type {JsonObject} from './json.ts';

/**
 * Puts the events of a transcript together, as servers write them: with OpenAI's names (llama-server), in pieces of a
 * chat (vLLM), or as bare texts.
 */
export class TranscriptReader {
  #last: JsonObject | undefined;
  #text: string | undefined;
  #hasMark = false;
  #isBare = false;

  /** Takes the next event; false when it is not JSON. */
  take({data}: ServerEvent): boolean {
    if (data === '[DONE]') {
      this.#hasMark = true;
      return true;
    }
    const told = parseObject(data);
    if (told === undefined) return false;
    if (told['type'] === 'transcript.text.done') this.#last = told;
    const isBare = told['type'] === undefined && typeof told['text'] === 'string';
    const piece = isBare ? told['text'] : told['type'] === 'transcript.text.delta' ? told['delta'] : chatPiece(told);
    if (typeof piece === 'string') this.#text = (this.#text ?? '') + piece;
    this.#isBare ||= isBare;
    return true;
  }

  /** Its end has been told: by an event that says it all, which is then the answer, or by a mark. */
  whole(): JsonObject | undefined {
    return this.#last ?? (this.#hasMark && this.#text !== undefined ? {text: this.#text} : undefined);
  }

  /** What the end of the stream makes whole: nothing else ends bare texts. */
  ended(): JsonObject | undefined {
    return this.whole() ?? (this.#isBare ? {text: this.#text} : undefined);
  }
}

function chatPiece({choices}: JsonObject): unknown {
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  const delta = isObject(choice) ? choice['delta'] : undefined;
  return isObject(delta) ? delta['content'] : undefined;
}
