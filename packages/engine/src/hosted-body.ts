import {Fault, isObject} from '@hearsay/core';
import type {Endpoint, Refusal} from '@hearsay/core';

/** What hosted services with an OpenAI-compatible API have in common with llama-server. */
const hostedEndpoints: readonly Endpoint[] = ['/v1/chat/completions', '/v1/completions', '/v1/embeddings'];

/** A text has more bytes than this for each of its tokens in every language that pays by the token. */
const bytesPerTokenMin = 3;

export interface HostedLimits {
  /** For prompt and answer together. */
  readonly tokensPerRequest: number;
  /** Which field of the body limits the answer. */
  readonly limitField: 'max_tokens' | 'max_completion_tokens';
}

/** Pure: the most tokens that a prompt in so many bytes of body can be. */
function promptTokensIn(bodyBytes: number): number {
  return Math.ceil(bodyBytes / bytesPerTokenMin);
}

/** Pure: what speaks against sending a request of that kind and size. */
export function complainHosted(
  {endpoint, bodyBytes}: {readonly endpoint: Endpoint; readonly bodyBytes: number},
  {tokensPerRequest}: HostedLimits,
): Refusal | undefined {
  if (!hostedEndpoints.includes(endpoint)) {
    return {kind: 'refused', code: 'capability', message: `hosted services are not asked for ${endpoint}`};
  }
  if (promptTokensIn(bodyBytes) < tokensPerRequest) return undefined;
  const message = `the request may have more than the ${tokensPerRequest} tokens that one request may cost there`;
  return {kind: 'refused', code: 'too-large', message};
}

export interface HostedBody {
  readonly bytes: Uint8Array;
  /** Most tokens that it can cost. */
  readonly tokensMax: number;
  /** The client wants the event with the usage, which is always asked for. */
  readonly wantsUsage: boolean;
}

/** Pure: the body as the service gets it: its own model name, our limit, and no fields that only llama-server knows. */
export function hostedBody(
  body: Uint8Array,
  {endpoint, model}: {readonly endpoint: Endpoint; readonly model: string},
  limits: HostedLimits,
): HostedBody {
  const asked = parse(body);
  const promptTokens = promptTokensIn(body.length);
  const kept = Object.fromEntries(Object.entries(asked).filter(([name]) => !llamaFields.has(name)));
  if (endpoint === '/v1/embeddings') {
    return {bytes: encode({...kept, model}), tokensMax: promptTokens, wantsUsage: true};
  }
  const {max_tokens: tokens, max_completion_tokens: completionTokens, n, ...rest} = kept;
  const answers = count(n) ?? 1;
  const fieldAsked = count(completionTokens) === undefined ? limits.limitField : 'max_completion_tokens';
  const answerMax = Math.floor((limits.tokensPerRequest - promptTokens) / answers);
  const answerTokens = Math.max(1, Math.min(answerMax, count(completionTokens) ?? count(tokens) ?? answerMax));
  const options = isObject(asked['stream_options']) ? asked['stream_options'] : {};
  const isStream = asked['stream'] === true;
  const bytes = encode({
    ...rest,
    ...(n === undefined ? {} : {n}),
    model,
    [fieldAsked]: answerTokens,
    ...(isStream ? {stream_options: {...options, include_usage: true}} : {}),
  });
  const wantsUsage = !isStream || options['include_usage'] === true;
  return {bytes, tokensMax: promptTokens + answers * answerTokens, wantsUsage};
}

/** A service refuses fields that it does not know. */
const llamaFields: ReadonlySet<string> = new Set([
  'cache_prompt',
  'chat_template_kwargs',
  'id_slot',
  'min_p',
  'mirostat',
  'mirostat_eta',
  'mirostat_tau',
  'n_predict',
  'reasoning_format',
  'repeat_last_n',
  'repeat_penalty',
  'return_progress',
  'timings_per_token',
  'top_k',
  'typical_p',
]);

function parse(body: Uint8Array): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(body));
    if (isObject(value)) return value;
  } catch (cause) {
    throw new Fault('BAD_REQUEST', 'the body is no JSON', {cause});
  }
  throw new Fault('BAD_REQUEST', 'the body is no JSON object');
}

function encode(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}

function count(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : undefined;
}
