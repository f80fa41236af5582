import {untilAborted} from '@hearsay/core';
import type {Answer} from '@hearsay/core';

/** Called for each chunk; resolves when the next one may come, with false when no more is wanted. */
export type Take = (chunk: Uint8Array) => boolean | Promise<boolean>;

/**
 * Hands every chunk of a body to `take`. When the signal aborts it rejects at once with the signal's reason, whatever
 * the body is waiting for. However it ends, the body is ended too.
 */
export async function consume(body: AsyncIterable<Uint8Array>, take: Take, signal: AbortSignal): Promise<void> {
  const iterator = body[Symbol.asyncIterator]();
  try {
    await untilAborted(pump(iterator, take, signal), signal);
  } finally {
    endQuietly(iterator);
  }
}

/** The text of a body, of which no more than `bytesMax` is read. */
export async function readText(
  body: AsyncIterable<Uint8Array>,
  bytesMax: number,
  signal: AbortSignal,
): Promise<string> {
  const chunks: Uint8Array[] = [];
  let restBytes = bytesMax;
  function take(chunk: Uint8Array): boolean {
    chunks.push(chunk.subarray(0, restBytes));
    restBytes -= chunk.length;
    return restBytes > 0;
  }
  await consume(body, take, signal);
  return Buffer.concat(chunks).toString();
}

/** Ends an answer that came after its client had gone. */
export function discard({body}: Answer): void {
  endQuietly(body[Symbol.asyncIterator]());
}

/** Ends a body that nobody reads. Its own trouble with that changes nothing for the client. */
function endQuietly(iterator: AsyncIterator<Uint8Array>): void {
  iterator.return?.().catch(() => {});
}

/** A loop of its own, so that no chunk pays for the watch on the signal. */
async function pump(iterator: AsyncIterator<Uint8Array>, take: Take, signal: AbortSignal): Promise<void> {
  for (;;) {
    const step = await iterator.next();
    if (step.done === true || signal.aborted) return;
    const more = take(step.value);
    if (!(typeof more === 'boolean' ? more : await more)) return;
  }
}
