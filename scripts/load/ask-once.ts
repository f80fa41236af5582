import {counted} from '../../test/support/chat.ts';

/** How one request may end. Everything a client can tell apart has a name; what has none is a fault of hearsay. */
type Outcome =
  | 'whole'
  /** The client left on purpose. */
  | 'left'
  /** A refusal or failure before any output, with a status and a code. */
  | `refused ${number} ${string}`
  /** An error event after output. */
  | `interrupted ${string}`
  /** The connection to the gateway itself broke, as it must when that daemon is killed. */
  | 'gateway gone'
  /** Lost, doubled or replayed pieces, an end without a sign, an error without a name. */
  | `WRONG ${string}`;

export interface Ask {
  readonly url: string;
  readonly model: string;
  readonly tokens: number;
  readonly stream: boolean;
  /** Leave after this many pieces of the stream. */
  readonly leaveAfter?: number;
  /** Longer than any answer takes; a request that is still open then was forgotten. */
  readonly msMax: number;
}

export interface Ended {
  /** Of the request, from the answer's header; undefined when there was no answer. */
  readonly id: string | undefined;
  readonly outcome: Outcome;
  readonly node: string | undefined;
  readonly attempts: number;
  readonly ms: number;
}

/** Sends one chat request to a counting model and judges how it ended. Never throws. */
export async function askOnce(ask: Ask): Promise<Ended> {
  const startedMs = performance.now();
  const controller = new AbortController();
  let forgotten = false;
  const limit = setTimeout(() => {
    forgotten = true;
    controller.abort();
  }, ask.msMax);
  const seen: Seen = {id: undefined, text: '', pieces: 0, done: false, node: undefined, attempts: 0, leaving: false};
  let outcome: Outcome;
  try {
    outcome = await judge(ask, seen, controller);
  } catch (error) {
    if (forgotten) outcome = `WRONG still open after ${ask.msMax} ms`;
    else if (seen.leaving) outcome = 'left';
    else outcome = isGone(error) ? 'gateway gone' : `WRONG ${String(error)}`;
  } finally {
    clearTimeout(limit);
  }
  const said = counted(ask.tokens);
  if (!said.startsWith(seen.text)) outcome = `WRONG text: ${seen.text.slice(0, 80)}`;
  return {id: seen.id, outcome, node: seen.node, attempts: seen.attempts, ms: performance.now() - startedMs};
}

interface Seen {
  id: string | undefined;
  text: string;
  pieces: number;
  done: boolean;
  node: string | undefined;
  attempts: number;
  leaving: boolean;
}

async function judge(ask: Ask, seen: Seen, controller: AbortController): Promise<Outcome> {
  const {url, model, tokens, stream} = ask;
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: {'content-type': 'application/json'},
    body: JSON.stringify({model, stream, max_tokens: tokens, messages: [{role: 'user', content: 'count'}]}),
    signal: controller.signal,
  });
  seen.id = response.headers.get('x-hearsay-request') ?? undefined;
  seen.node = response.headers.get('x-hearsay-node') ?? undefined;
  seen.attempts = Number(response.headers.get('x-hearsay-attempts') ?? 0);
  if (!response.ok) {
    const {error}: {error?: {code?: string}} = JSON.parse(await response.text());
    return error?.code ? `refused ${response.status} ${error.code}` : `WRONG ${response.status} without a code`;
  }
  if (!stream) {
    const whole: {choices?: {message?: {content?: string}}[]} = await response.json();
    seen.text = whole.choices?.[0]?.message?.content ?? '';
    return seen.text === counted(tokens) ? 'whole' : `WRONG answer: ${seen.text.slice(0, 80)}`;
  }
  return judgeStream(ask, seen, response, controller);
}

async function judgeStream(ask: Ask, seen: Seen, response: Response, controller: AbortController): Promise<Outcome> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of response.body ?? []) {
    rest += decoder.decode(chunk, {stream: true});
    const events = rest.split('\n\n');
    rest = events.pop() ?? '';
    for (const event of events) {
      const failed = take(event, seen);
      if (failed !== undefined) return failed;
    }
    if (ask.leaveAfter !== undefined && seen.pieces >= ask.leaveAfter) {
      seen.leaving = true;
      controller.abort();
      return 'left';
    }
  }
  if (!seen.done) return 'WRONG the stream ended without a sign';
  return seen.text === counted(ask.tokens) ? 'whole' : `WRONG answer: ${seen.text.slice(0, 80)}`;
}

/** Notes one event; returns the end of the request when it is an error. */
function take(event: string, seen: Seen): Outcome | undefined {
  const data = event
    .split('\n')
    .filter(line => line.startsWith('data: '))
    .map(line => line.slice(6))
    .join('\n');
  if (data === '') return undefined;
  if (seen.done) return 'WRONG something came after [DONE]';
  if (data === '[DONE]') {
    seen.done = true;
    return undefined;
  }
  let parsed: {error?: {code?: string}; choices?: {delta?: {content?: string | null}}[]};
  try {
    parsed = JSON.parse(data);
  } catch {
    return 'WRONG an event that is no JSON';
  }
  if (parsed.error) return parsed.error.code ? `interrupted ${parsed.error.code}` : 'WRONG an error without a code';
  const piece = parsed.choices?.[0]?.delta?.content ?? '';
  if (piece !== '') seen.pieces += 1;
  seen.text += piece;
  return undefined;
}

/** What fetch says when the other end has closed the connection. */
function isGone(error: unknown): boolean {
  const codes = new Set(['ECONNREFUSED', 'ECONNRESET', 'UND_ERR_SOCKET', 'EPIPE']);
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    if ('code' in cause && typeof cause.code === 'string' && codes.has(cause.code)) return true;
    if (cause.message === 'terminated') return true;
  }
  return false;
}
