import {Fault} from '@hearsay/core';

/** What the last event of a whole stream is called, in the dialects that name their events. */
const lastNames: ReadonlySet<string> = new Set([
  'message_stop',
  'response.completed',
  'response.incomplete',
  'transcript.text.done',
]);

/** How a whole stream ends in the others. */
const endMark = /(?:^|\n)data: ?(?:\[DONE\]|\{.*"stop":true.*\}|\{"type": ?"transcript\.text\.done".*\})\s*$/u;

/** Some servers stream a transcript as bare texts, and nothing ends it but the stream itself. */
const bareText = /(?:^|\n)data: ?\{"text": ?".*\}\s*$/u;

/** An error event, named or not, as the last one. */
const errorEvent = /(?:^|\n)(?:event: ?error\r?\n[^\n]*|data: ?\{"error":[^\n]*)\s*$/u;

interface AnswerEnd {
  /** The last bytes. */
  readonly text: string;
  /** They are all there were. */
  readonly isAll: boolean;
}

interface Ended extends AnswerEnd {
  readonly contentType: string;
  readonly status: number;
  readonly nodeName: string;
  readonly isClientGone: boolean;
}

/**
 * Pure: what an answer ended with, given what its bytes ended with; undefined when it is whole. Many clients leave as
 * soon as they see the end mark. Whoever stops reading while its client is there has seen what is wrong with it.
 */
export function causeOfEnd(error: unknown, ended: Ended): unknown {
  const {contentType, isClientGone, nodeName, status, text} = ended;
  const isLeft = error instanceof Fault && error.code === 'CANCELLED' && !isClientGone;
  if (error !== undefined && !isLeft && !hasEndMark(contentType, text)) return error;
  return status === 200 ? brokenEnd(contentType, ended, nodeName) : undefined;
}

/**
 * Pure: what is wrong with an answer whose bytes came to their end, judged by the last of them; undefined when it is
 * whole, or when they do not tell. The client is told by its dialect, the journal by this.
 */
export function brokenEnd(contentType: string, end: AnswerEnd, nodeName: string): Fault | undefined {
  const {text: tail, isAll} = end;
  const isStream = contentType.startsWith('text/event-stream');
  if (!isStream && !contentType.startsWith('application/json')) return undefined;
  if (isStream && errorEvent.test(tail)) {
    return new Fault('INTERRUPTED', `${nodeName} ended its answer with an error`);
  }
  const isWhole = isStream ? isWholeStream(tail) : isWholeObject(tail, isAll);
  return isWhole ? undefined : new Fault('INTERRUPTED', `${nodeName} ended its answer before it was whole`);
}

/** Pure: the mark at the end of a stream has come: the client has all of it, whatever breaks behind. */
export function hasEndMark(contentType: string, tail: string): boolean {
  if (!contentType.startsWith('text/event-stream') || !/\n\s*$/u.test(tail)) return false;
  const last = [...tail.matchAll(/(?:^|\n)event: ?(\S+)\r?\ndata:/gu)].at(-1)?.[1];
  return last === undefined ? endMark.test(tail) : lastNames.has(last);
}

function isWholeStream(tail: string): boolean {
  const names = [...tail.matchAll(/(?:^|\n)event: ?(\S+)/gu)];
  const last = names.at(-1)?.[1];
  if (last !== undefined) return lastNames.has(last);
  const isInsideOfLongEvent = !/(?:^|\n)data:/u.test(tail);
  return isInsideOfLongEvent || endMark.test(tail) || bareText.test(tail);
}

function isWholeObject(tail: string, isAll: boolean): boolean {
  if (!isAll) return /[}\]]\s*$/u.test(tail);
  try {
    JSON.parse(tail);
    return true;
  } catch {
    return false; // the end of it is what has not come
  }
}
