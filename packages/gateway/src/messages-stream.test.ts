import test from 'ava';
import {EventSplitter} from './event-stream.ts';
import type {ServerEvent} from './event-stream.ts';
import {isObject, parseObject} from './json.ts';
import type {JsonObject} from './json.ts';
import {messagesAssembly} from './messages-assembly.ts';
import {messagesTranslator} from './messages-stream.ts';
import type {Problem} from './problem.ts';

function event(name: string, data: JsonObject): ServerEvent {
  return {name, data: JSON.stringify({type: name, ...data})};
}

function translate(...events: readonly ServerEvent[]): readonly JsonObject[] {
  const translator = messagesTranslator('asked');
  const text = events.map(each => textOf(translator.translate(each))).join('');
  return new EventSplitter().push(Buffer.from(text)).map(({name, data}) => {
    const parsed = parseObject(data) ?? {};
    if (parsed['type'] !== name) throw new Error(`${name} is not ${String(parsed['type'])}`);
    return parsed;
  });
}

function textOf(piece: string | Problem): string {
  if (typeof piece === 'string') return piece;
  throw new Error(piece.message);
}

const start = event('message_start', {message: {id: 'chatcmpl-1', model: 'file', usage: {input_tokens: 3}}});
const stop = event('message_stop', {});
const begin = (index: number, block: JsonObject): ServerEvent =>
  event('content_block_start', {index, content_block: block});
const delta = (index: number, piece: JsonObject): ServerEvent => event('content_block_delta', {index, delta: piece});
const end = (index: number): ServerEvent => event('content_block_stop', {index});
const ended = (reason: string): ServerEvent =>
  event('message_delta', {delta: {stop_reason: reason, stop_sequence: null}, usage: {output_tokens: 2}});

/** As llama-server sends it: thinking ends after the text. */
const thinking = [
  start,
  begin(0, {type: 'thinking', thinking: ''}),
  delta(0, {type: 'thinking_delta', thinking: 'hm'}),
  begin(1, {type: 'text', text: ''}),
  delta(1, {type: 'text_delta', text: 'say "signature_delta"'}),
  delta(0, {type: 'signature_delta', signature: ''}),
  end(0),
  end(1),
  ended('end_turn'),
  stop,
];

test('the message has the name that was asked for and an id like all of them', t => {
  t.like(translate(start)[0], {message: {id: 'msg_1', model: 'asked'}});
});

test('a block of thinking is signed and ends before the text begins, and ends once', t => {
  const order = translate(...thinking).map(({type, index, delta: piece}) => {
    const words = [type, index, isObject(piece) ? piece['type'] : undefined];
    return words
      .filter(word => word !== undefined)
      .map(String)
      .join(' ');
  });
  t.deepEqual(order, [
    'message_start',
    'content_block_start 0',
    'content_block_delta 0 thinking_delta',
    'content_block_delta 0 signature_delta',
    'content_block_stop 0',
    'content_block_start 1',
    'content_block_delta 1 text_delta',
    'content_block_stop 1',
    'message_delta',
    'message_stop',
  ]);
});

test('a tool begins with an empty input', t => {
  const [block] = translate(begin(0, {type: 'tool_use', id: 'x', name: 'a'}));
  t.deepEqual(block?.['content_block'], {input: {}, type: 'tool_use', id: 'x', name: 'a'});
});

test('an error that the engine sends bare is a problem with its status', t => {
  const bare = {name: 'error', data: '{"code":400,"message":"said so","type":"invalid_request_error"}'};
  t.like(messagesTranslator('m').translate(bare), {kind: 'problem', status: 400, message: 'said so'});
});

function assemble(...events: readonly ServerEvent[]): JsonObject | undefined {
  const assembly = messagesAssembly('asked');
  for (const each of events) assembly.take(each);
  return assembly.result();
}

test('a message is put together with its usage from both ends', t => {
  t.deepEqual(assemble(...thinking), {
    id: 'msg_1',
    model: 'asked',
    content: [
      {type: 'thinking', thinking: 'hm', signature: ''},
      {type: 'text', text: 'say "signature_delta"'},
    ],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: {input_tokens: 3, output_tokens: 2},
  });
});

test('a message without its end is none', t => {
  t.is(assemble(...thinking.slice(0, -1)), undefined);
});

const call = [
  start,
  begin(0, {type: 'tool_use', id: 'x', name: 'rm'}),
  delta(0, {type: 'd', partial_json: '{"path": "/ho'}),
];

test('R18, C58: half the arguments of a tool are never passed off as all of them', t => {
  t.throws(() => assemble(...call, end(0), ended('tool_use'), stop), {message: /rm with arguments that are not JSON/u});
  t.deepEqual(assemble(...call, end(0), ended('max_tokens'), stop)?.['content'], []);
});
