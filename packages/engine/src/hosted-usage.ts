import {readUsage} from '@hearsay/core';

/** The event with the usage is at the end and small. */
const tailBytesMax = 4096;

/** An event that is longer is passed on without a look into it. */
const eventBytesMax = 64 * 1024;

/**
 * Reads in passing what a hosted service counted. A client that did not ask for the event with the usage does not get
 * it, because it has no choices, and programs trip over that.
 */
export class HostedUsage {
  readonly #passesUsage: boolean;
  #tail: Buffer = Buffer.alloc(0);
  #rest: Buffer = Buffer.alloc(0);

  constructor(passesUsage: boolean) {
    this.#passesUsage = passesUsage;
  }

  /** What of the bytes goes on to the client now. */
  pass(chunk: Uint8Array): Uint8Array {
    this.#tail = Buffer.concat([this.#tail, chunk]).subarray(-tailBytesMax);
    if (this.#passesUsage) return chunk;
    this.#rest = Buffer.concat([this.#rest, chunk]);
    const end = this.#rest.lastIndexOf('\n\n');
    const cut = end >= 0 ? end + 2 : this.#rest.length > eventBytesMax ? this.#rest.length : 0;
    const events = this.#rest.subarray(0, cut);
    this.#rest = this.#rest.subarray(cut);
    return withoutUsage(events);
  }

  /** What is left when the answer has ended. */
  end(): Uint8Array {
    const rest = this.#rest;
    this.#rest = Buffer.alloc(0);
    return rest;
  }

  /** Prompt and answer together; undefined when the service did not say. */
  tokens(): number | undefined {
    const usage = readUsage(this.#tail.toString().replaceAll(/"usage":\s+\{/gu, '"usage":{'));
    if (usage?.promptTokens === undefined) return undefined;
    return usage.promptTokens + (usage.outputTokens ?? 0);
  }
}

function withoutUsage(events: Buffer): Buffer {
  if (!events.includes('"usage"')) return events;
  const kept = events.toString().replaceAll(/[^]*?\n\n/gu, event => (isUsage(event) ? '' : event));
  return Buffer.from(kept);
}

function isUsage(event: string): boolean {
  return /"choices":\s*\[\]/u.test(event) && /"usage":\s*\{/u.test(event);
}
