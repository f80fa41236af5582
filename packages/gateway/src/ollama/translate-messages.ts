import {isObject} from '../json.ts';
import type {JsonObject} from '../json.ts';
import {badRequest, isProblem} from '../problem.ts';
import type {Problem} from '../problem.ts';
import {translateMedium} from './media.ts';

export interface TranslatedMessages {
  readonly kind: 'messages';
  readonly messages: readonly JsonObject[];
  readonly hasImage: boolean;
  readonly hasAudio: boolean;
}

/** Tool calls that the conversation has not answered yet, oldest first. */
type OpenCalls = {readonly id: string; readonly name: string}[];

/**
 * Pure: Ollama's messages as llama-server's. Arguments of tool calls become text, images become content parts, and
 * results of tools get the ids that Ollama clients leave out: by name if given, else in the order of the calls.
 */
export function translateMessages(list: readonly unknown[]): TranslatedMessages | Problem {
  const messages: JsonObject[] = [];
  const open: OpenCalls = [];
  let [hasImage, hasAudio] = [false, false];
  for (const message of list) {
    if (!isObject(message)) return badRequest('a message is not an object', {param: 'messages'});
    const content = translateContent(message);
    if (content.kind === 'problem') return content;
    hasImage ||= content.hasImage;
    hasAudio ||= content.hasAudio;
    const role = typeof message['role'] === 'string' ? message['role'].toLowerCase() : 'user';
    const calls = translateCalls(message['tool_calls'], messages.length, open);
    if (isProblem(calls)) return calls;
    messages.push({
      role,
      content: content.content,
      ...(typeof message['thinking'] === 'string' && message['thinking'] !== ''
        ? {reasoning_content: message['thinking']}
        : {}),
      ...(calls.length > 0 ? {tool_calls: calls} : {}),
      ...(role === 'tool' ? answered(message, open) : {}),
    });
  }
  return {kind: 'messages', messages, hasImage, hasAudio};
}

interface TranslatedContent extends Pick<TranslatedMessages, 'hasImage' | 'hasAudio'> {
  readonly kind: 'content';
  readonly content: unknown;
}

/** Text stays text; with images it becomes a list of parts. A list of parts is let through, though no Ollama has it. */
function translateContent({content, images}: JsonObject): TranslatedContent | Problem {
  const own = content ?? '';
  if (typeof own !== 'string' && !Array.isArray(own)) {
    return badRequest('the content of a message is neither text nor a list of parts', {param: 'messages'});
  }
  const parts: JsonObject[] = Array.isArray(own) ? own.filter(isObject) : own === '' ? [] : [{type: 'text', text: own}];
  let hasImage = parts.some(({type}) => type === 'image_url');
  let hasAudio = parts.some(({type}) => type === 'input_audio');
  const media: readonly unknown[] = Array.isArray(images) ? images : [];
  for (const value of media) {
    const medium = translateMedium(value);
    if (medium === undefined) return badRequest('an image is not base64', {param: 'images'});
    if (medium === 'webp')
      return badRequest('llama-server cannot read WebP images; send PNG or JPEG', {param: 'images'});
    parts.push(medium.part);
    if (medium.kind === 'image') hasImage = true;
    else hasAudio = true;
  }
  const isText = media.length === 0 && typeof own === 'string';
  return {kind: 'content', content: isText ? own : parts, hasImage, hasAudio};
}

function translateCalls(value: unknown, position: number, open: OpenCalls): readonly JsonObject[] | Problem {
  const calls: readonly unknown[] = Array.isArray(value) ? value : [];
  const translated: JsonObject[] = [];
  for (const [index, call] of calls.entries()) {
    const called = isObject(call) ? call['function'] : undefined;
    const name = isObject(called) ? called['name'] : undefined;
    if (!isObject(call) || !isObject(called) || typeof name !== 'string') {
      return badRequest('a tool call has no function name', {param: 'messages'});
    }
    const id = typeof call['id'] === 'string' && call['id'] !== '' ? call['id'] : `call_${position}_${index}`;
    open.push({id, name});
    translated.push({id, type: 'function', function: {name, arguments: argumentsText(called['arguments'])}});
  }
  return translated;
}

/** Ollama's arguments are an object; some clients send them as text all the same (C58). */
function argumentsText(value: unknown): string {
  if (typeof value === 'string') return value.trim() === '' ? '{}' : value;
  return JSON.stringify(value ?? {});
}

/** Which call a message of the role `tool` answers. */
function answered({tool_call_id: given, tool_name: name}: JsonObject, open: OpenCalls): JsonObject {
  const index = open.findIndex(call =>
    typeof given === 'string' && given !== '' ? call.id === given : typeof name !== 'string' || call.name === name,
  );
  const [call] = index < 0 ? [] : open.splice(index, 1);
  const id = typeof given === 'string' && given !== '' ? given : call?.id;
  const named = typeof name === 'string' ? name : call?.name;
  return {...(id === undefined ? {} : {tool_call_id: id}), ...(named === undefined ? {} : {name: named})};
}
