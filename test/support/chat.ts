/** A small client that keeps what the SDKs hide: headers, events as they come, and how a stream ended. */

export interface ChatStream {
  readonly status: number;
  readonly headers: Headers;
  /** The data of each event, `[DONE]` included, as it arrives. */
  readonly events: AsyncGenerator<string>;
}

export interface ChatText {
  readonly text: string;
  /** The stream ended with `[DONE]`. */
  readonly done: boolean;
  /** The error event, if there was one. */
  readonly error: {readonly message: string; readonly code: string} | undefined;
}

export async function chat(url: string, body: object, signal?: AbortSignal): Promise<ChatStream> {
  const messages = [{role: 'user', content: 'count'}];
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: {'content-type': 'application/json'},
    body: JSON.stringify({stream: true, messages, ...body}),
    ...(signal ? {signal} : {}),
  });
  return {status: response.status, headers: response.headers, events: eventsOf(response)};
}

/** Reads a whole chat stream. */
export async function chatText(url: string, body: object): Promise<ChatText & Pick<ChatStream, 'status' | 'headers'>> {
  const {status, headers, events} = await chat(url, body);
  return {status, headers, ...(await collect(events))};
}

/** Joins what is left of a stream. */
export async function collect(events: AsyncIterable<string>): Promise<ChatText> {
  let text = '';
  let done = false;
  let error: ChatText['error'];
  for await (const event of events) {
    if (event === '[DONE]') done = true;
    else {
      text += deltaOf(event);
      error ??= errorOf(event);
    }
  }
  return {text, done, error};
}

/** The text that one event adds. */
export function deltaOf(event: string): string {
  if (event === '[DONE]') return '';
  const parsed: {choices?: {delta?: {content?: string | null}}[]} = JSON.parse(event);
  return parsed.choices?.[0]?.delta?.content ?? '';
}

/** ` 1 2 3 … n`, as the counting models say it. */
export function counted(n: number): string {
  return Array.from({length: n}, (_, index) => ` ${index + 1}`).join('');
}

function errorOf(event: string): ChatText['error'] {
  const parsed: {error?: {message: string; code: string}} = JSON.parse(event);
  return parsed.error;
}

async function* eventsOf(response: Response): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of response.body ?? []) {
    rest += decoder.decode(chunk, {stream: true});
    const events = rest.split('\n\n');
    rest = events.pop() ?? '';
    for (const event of events) {
      const data = event.split('\n').filter(line => line.startsWith('data: '));
      if (data.length > 0) yield data.map(line => line.slice(6)).join('\n');
    }
  }
}
