/** A request of llama-server's own API. */
export interface LlamaRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** Sent as JSON; nothing: an empty body. */
  readonly body?: unknown;
}

/** What can be compared of an answer. */
interface LlamaAnswer {
  readonly status: number;
  readonly contentType: string;
  /** The object, or the events of a stream. Values that differ from one run to the next are replaced by their types. */
  readonly body: unknown;
}

/** What is another one each time, or in another place. */
const fleeting: ReadonlySet<string> = new Set([
  'id',
  'item_id',
  'call_id',
  'created',
  'created_at',
  'completed_at',
  'id_slot',
  'media_marker',
  'model_path',
  'prompt_ms',
  'prompt_per_token_ms',
  'prompt_per_second',
  'predicted_ms',
  'predicted_per_token_ms',
  'predicted_per_second',
  'time_ms',
]);

/** Sends the request and gives what can be compared of the answer, without the fields of these names. */
export async function answerOf(
  url: string,
  {method, path, body}: LlamaRequest,
  without: readonly string[],
): Promise<LlamaAnswer> {
  const sent = {headers: {'content-type': 'application/json'}, body: JSON.stringify(body) ?? ''};
  const response = await fetch(`${url}${path}`, {method, ...(method === 'POST' ? sent : {})});
  const contentType = (response.headers.get('content-type') ?? '').split(';', 1)[0] ?? '';
  const text = await response.text();
  const parts = contentType === 'text/event-stream' ? events(text) : [text];
  const compared = parts.map(part => steady(parse(part), new Set(without)));
  return {status: response.status, contentType, body: parts.length === 1 ? compared[0] : compared};
}

/** Comments apart, and the `null` that llama-server writes where one of several answers begins. */
function events(text: string): readonly string[] {
  const data = text.split('\n').filter(line => line.startsWith('data: '));
  return data.map(line => line.slice(6)).filter(line => line !== 'null');
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** `null` is as good as nothing, and small numbers that depend on what else is in a batch are as good as the same. */
function steady(value: unknown, without: ReadonlySet<string>): unknown {
  if (Array.isArray(value)) return value.map(part => steady(part, without));
  if (typeof value === 'number' && !Number.isInteger(value)) return Math.round(value * 1000) / 1000;
  if (typeof value !== 'object' || value === null) return value;
  const shown = Object.entries(value).filter(([name, field]) => field !== null && !without.has(name));
  return Object.fromEntries(
    shown.map(([name, field]) => [
      name,
      fleeting.has(name)
        ? typeof field
        : steady(field, name === 'error' ? new Set([...without, ...ownToErrors]) : without),
    ]),
  );
}

/** Of an error object: llama-server's code is the status again, ours is a word. */
const ownToErrors = ['code', 'param', 'metadata'];
