import {isObject} from './json.ts';

/** What of a request helps to choose a node, beside the model: read once, where the body is parsed. */
export interface RoutingHints {
  /** The client's own limit on output tokens. */
  readonly maxTokens: number | undefined;
  /** What the client calls the conversation; never sent to anybody. */
  readonly session: string | undefined;
  /**
   * The conversation as text, one piece a message, tools first. As it goes on pieces are only added, so that two
   * requests of one conversation begin alike, as their prompts do.
   */
  readonly conversation: readonly string[];
}

/** Headers in which clients send the name of a conversation, the strongest first (facts: client APIs §2.5). */
const sessionHeaders = [
  'x-hearsay-session',
  'x-session-id',
  'session-id',
  'session_id',
  'thread-id',
  'x-claude-code-session-id',
  'x-opencode-session',
  'x-openwebui-chat-id',
  'x-conversation-id',
  'x-amp-thread-id',
  'x-session-affinity',
] as const;

/** Fields of a body in which they do. `user` names a person, not a conversation, so it is not among them. */
const sessionFields = ['prompt_cache_key', 'session_id', 'conversation_id'] as const;

/** A longer name is no name. */
const sessionLengthMax = 255;

/** Of an image, which is long and random, this much of both ends tells it from others. */
const imageEndLength = 1024;

/** Pure: reads a parsed body of any of OpenAI's or Anthropic's endpoints that write text. */
export function routingHints(
  body: Readonly<Record<string, unknown>>,
  header: (name: string) => string | undefined,
): RoutingHints {
  return {
    maxTokens: positive(body['max_completion_tokens']) ?? positive(body['max_tokens']) ?? positive(body['n_predict']),
    session: sessionOf(body, header),
    conversation: conversationOf(body),
  };
}

function sessionOf(
  body: Readonly<Record<string, unknown>>,
  header: (name: string) => string | undefined,
): string | undefined {
  const {metadata} = body; // Anthropic's; in it Claude Code names its session
  const user = isObject(metadata) ? metadata['user_id'] : undefined;
  const names = [...sessionHeaders.map(header), ...sessionFields.map(field => body[field]), user];
  for (const name of names) {
    if (typeof name === 'string' && name !== '' && name.length <= sessionLengthMax) return name;
  }
  return undefined;
}

function conversationOf(body: Readonly<Record<string, unknown>>): readonly string[] {
  const {tools, system = body['instructions'], messages = body['input'], prompt = body['input']} = body;
  const pieces: string[] = [];
  if (Array.isArray(tools) && tools.length > 0) pieces.push(JSON.stringify(tools));
  if (system !== undefined) pieces.push(`system\u001F${typeof system === 'string' ? system : contentText(system)}`);
  if (typeof prompt === 'string') pieces.push(prompt);
  if (!Array.isArray(messages)) return pieces;
  const all: readonly unknown[] = messages;
  for (const message of all) {
    if (!isObject(message)) continue;
    const {role, content, tool_calls: calls} = message;
    const said = typeof content === 'string' ? content : contentText(content);
    pieces.push(`${String(role)}\u001F${said}${calls === undefined ? '' : JSON.stringify(calls)}`);
  }
  return pieces;
}

function contentText(content: unknown): string {
  if (!Array.isArray(content)) return '';
  const parts: readonly unknown[] = content;
  return parts.map(partText).join('\u001E');
}

function partText(part: unknown): string {
  if (!isObject(part)) return '';
  const {text, image_url: image} = part;
  if (typeof text === 'string') return text;
  const url = isObject(image) ? image['url'] : image;
  if (typeof url !== 'string') return JSON.stringify(part);
  return `${url.length} ${url.slice(0, imageEndLength)} ${url.slice(-imageEndLength)}`;
}

function positive(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? value : undefined;
}
