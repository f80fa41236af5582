import {isObject} from './json.ts';
import type {JsonObject} from './json.ts';

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
  /** How much of the body is pictures and sound beyond what a text would take that is read as fast. */
  readonly mediaBytes: number;
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

/** Of a picture or a recording, which is long and random, this much of both ends tells it from others. */
const mediaEndLength = 1024;

/** A picture or half a minute of sound becomes some hundred tokens, whatever its size: as much as this much text. */
export const mediaTextBytes = 4096;

/** Pure: reads a parsed body of any of OpenAI's or Anthropic's endpoints that write text. */
export function routingHints(
  body: Readonly<Record<string, unknown>>,
  header: (name: string) => string | undefined,
): RoutingHints {
  return {
    maxTokens: positive(body['max_completion_tokens']) ?? positive(body['max_tokens']) ?? positive(body['n_predict']),
    session: sessionOf(body, header),
    conversation: conversationOf(body),
    mediaBytes: mediaBytesIn(body['messages'] ?? body['input']),
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
  const {text} = part;
  if (typeof text === 'string') return text;
  const media = mediaOf(part);
  if (media === undefined) return JSON.stringify(part);
  return `${media.length} ${media.slice(0, mediaEndLength)} ${media.slice(-mediaEndLength)}`;
}

/** The picture or the recording of a part in each of the dialects, or where it lies. */
function mediaOf({image_url: image, input_audio: sound, source}: JsonObject): string | undefined {
  const media = isObject(image)
    ? image['url']
    : (image ?? (isObject(sound) ? sound['data'] : isObject(source) ? source['data'] : undefined));
  return typeof media === 'string' ? media : undefined;
}

/** Parts stand in messages, and in what tools gave back, which is a part itself. */
function mediaBytesIn(parts: unknown): number {
  if (!Array.isArray(parts)) return 0;
  const all: readonly unknown[] = parts;
  return all.reduce<number>((total, part) => {
    if (!isObject(part)) return total;
    const length = mediaOf(part)?.length ?? 0;
    const inside = mediaBytesIn(part['content']) + mediaBytesIn(part['output']);
    return total + Math.max(0, length - mediaTextBytes) + inside;
  }, 0);
}

function positive(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? value : undefined;
}
