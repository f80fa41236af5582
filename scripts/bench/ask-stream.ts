import {Agent, request} from 'node:http';

/** One way to the models: what is measured is the difference between them. */
export interface Target {
  readonly name: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly agent: Agent;
  /** Processes on the way whose memory counts, by what they do. */
  readonly pids: Readonly<Record<string, number>>;
  /** Why requests failed. */
  readonly failures: string[];
}

export interface Wish {
  readonly model: string;
  readonly tokens: number;
  /** Pause between two tokens; only the scripted engine knows it. */
  readonly paceMs?: number;
  /** Called for each token with the time since the scripted engine wrote it. */
  readonly onToken?: (delayMs: number) => void;
  /** Called with the first byte. */
  readonly onFirst?: () => void;
}

/** A prompt of a usual size. */
const prompt = 'count '.repeat(600);

export function target(name: string, url: string, more: Partial<Target> = {}): Target {
  return {name, url, headers: {}, agent: new Agent({keepAlive: true}), pids: {}, failures: [], ...more};
}

/** The same, but a failure is only noted: what is measured of the others still counts. */
export async function tryStream(one: Target, wish: Wish): Promise<void> {
  try {
    await askStream(one, wish);
  } catch (error) {
    one.failures.push(error instanceof Error ? error.message.trim() : String(error));
  }
}

/** One streamed chat request: resolves at its end with the time to its first byte, rejects when it was not whole. */
export async function askStream(one: Target, wish: Wish): Promise<number> {
  const {url, headers, agent} = one;
  const body = JSON.stringify({
    model: wish.model,
    stream: true,
    max_tokens: wish.tokens,
    pace_ms: wish.paceMs ?? 0,
    messages: [{role: 'user', content: wish.model.startsWith('stamps') ? prompt : 'count'}],
  });
  const startMs = performance.now();
  const {promise, resolve, reject} = Promise.withResolvers<number>();
  const sent = request(`${url}/v1/chat/completions`, {
    method: 'POST',
    agent,
    headers: {...headers, 'content-type': 'application/json', 'content-length': Buffer.byteLength(body)},
  });
  sent.on('error', error => {
    // llama-server ends a connection after a hundred requests, which is no answer to this one.
    if (sent.reusedSocket && 'code' in error && error.code === 'ECONNRESET') resolve(askStream(one, wish));
    else reject(error);
  });
  sent.on('response', response => {
    let firstByteMs: number | undefined;
    let last = '';
    response.setEncoding('utf8').on('data', (chunk: string) => {
      if (firstByteMs === undefined) {
        firstByteMs = performance.now() - startMs;
        wish.onFirst?.();
      }
      if (wish.onToken) noteDelays(chunk, wish.onToken);
      last = chunk.length > 20 ? chunk : last + chunk;
    });
    response.on('error', reject);
    response.on('end', () => {
      if (firstByteMs !== undefined && last.endsWith('data: [DONE]\n\n')) resolve(firstByteMs);
      else reject(new Error(`${one.name}: ${response.statusCode}: ${last.slice(0, 300)}`));
    });
  });
  sent.end(body);
  return promise;
}

/** Stamps that are cut in two by a packet's edge are left out. */
function noteDelays(chunk: string, note: (delayMs: number) => void): void {
  const nowMicros = Number(process.hrtime.bigint() / 1000n);
  for (const [, stamp] of chunk.matchAll(/"content":"(\d+)"/gu)) note((nowMicros - Number(stamp)) / 1000);
}
