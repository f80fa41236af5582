import {describeError, Fault, isRequestMistake} from '@hearsay/core';
import type {LeasedBody} from './leased-body.ts';

/** Error bodies are small; a longer one is cut. */
const errorBodyBytesMax = 64 * 1024;

/** What another engine may do better: overloaded or broken, or a 200 whose first event is an error (R21). */
export async function engineFailure(status: number, body: LeasedBody): Promise<Fault | undefined> {
  if (status === 200) {
    const event = body.firstEventError();
    return event === undefined ? undefined : new Fault('ENGINE_FAILED', event, {details: {status}});
  }
  if (status !== 429 && (status < 500 || status === 501)) return undefined;
  if (status === 500 && isRequestMistake(messageIn(body.firstText()) ?? '')) return undefined;
  const text = await body.readText(errorBodyBytesMax);
  return new Fault('ENGINE_FAILED', messageIn(text) ?? `llama-server answered ${status}`, {
    details: {status, body: text},
  });
}

/**
 * Pure: llama-server answers some mistakes of clients with 500, such as a tool without a type, or with an error event.
 * Only another engine that answers the same request shows that the mistake was not the client's.
 */
export function mayBeOfTheRequest({details}: Fault): boolean {
  return details['status'] === 500 || details['status'] === 200;
}

/** The message of an OpenAI-style error body, or how it begins when the body is cut: some repeat the whole request. */
function messageIn(text: string): string | undefined {
  const found = /"message"\s*:\s*"((?:[^"\\]|\\.)*)/u.exec(text)?.[1];
  if (found === undefined) return undefined;
  try {
    return describeError(JSON.parse(`"${found}"`));
  } catch {
    return found;
  }
}
