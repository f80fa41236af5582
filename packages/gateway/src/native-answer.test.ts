import test from 'ava';
import type {JsonObject} from './json.ts';
import {nativeAssembly, nativeTranslator} from './native-answer.ts';
import type {NativeWish} from './native-answer.ts';

const wish = (changes: Partial<NativeWish> = {}): NativeWish => ({
  answers: 1,
  fields: [],
  showsTokens: false,
  ...changes,
});
const piece = (content: string, index = 0): JsonObject => ({
  index,
  content,
  tokens: [content.length],
  stop: false,
  completion_probabilities: [{token: content}],
});
const last = (index = 0): JsonObject => ({
  index,
  content: '',
  tokens: [],
  stop: true,
  stop_type: 'limit',
  generation_settings: {stream: true, seed: 1},
  timings: {predicted_n: 2},
});

function joined(changes: Partial<NativeWish>, ...pieces: readonly (JsonObject | null)[]): unknown {
  const assembly = nativeAssembly(wish(changes));
  for (const each of pieces) assembly.take({name: '', data: JSON.stringify(each)});
  return assembly.result();
}

test('the pieces of a native answer become the object that llama-server gives without a stream', t => {
  t.deepEqual(joined({}, piece('a'), piece('bb'), last()), {
    index: 0,
    content: 'abb',
    tokens: [],
    stop: true,
    stop_type: 'limit',
    generation_settings: {stream: false, seed: 1},
    timings: {predicted_n: 2},
    completion_probabilities: [{token: 'a'}, {token: 'bb'}],
  });
});

test('only who asks for the tokens gets them', t => {
  t.like(joined({showsTokens: true}, piece('a'), piece('bb'), last()), {tokens: [1, 2]});
});

test('several native answers come as a list in order, also when they end in another one', t => {
  const answer = joined({answers: 2}, null, piece('b', 1), piece('a'), last(1), last());
  t.like(answer, [
    {index: 0, content: 'a'},
    {index: 1, content: 'b'},
  ]);
});

test('an answer is whole only when each of several has ended', t => {
  t.is(joined({answers: 2}, piece('b', 1), piece('a'), last(1)), undefined);
  t.is(joined({}, piece('a')), undefined);
});

test('chosen fields are found by their paths, and those that are nowhere are left out', t => {
  const fields = ['content', 'timings/predicted_n', 'timings/no', 'toString'];
  t.deepEqual(joined({fields}, piece('a'), last()), {content: 'a', 'timings/predicted_n': 2});
});

test('a native stream passes as it is, is whole with its last answer, and chooses fields only in the end', t => {
  const translator = nativeTranslator(wish({answers: 2, fields: ['stop_type']}));
  const said = [piece('a'), last(), last(1)].map(each => translator.translate({name: '', data: JSON.stringify(each)}));
  t.deepEqual(said, [
    `data: ${JSON.stringify(piece('a'))}\n\n`,
    'data: {"stop_type":"limit"}\n\n',
    'data: {"stop_type":"limit"}\n\n',
  ]);
  t.true(translator.isWhole());
  t.is(translator.translate({name: '', data: 'null'}), '');
});

test('an error inside a native stream is a problem, not a piece', t => {
  const event = {name: '', data: '{"error":{"code":500,"message":"full","type":"server_error"}}'};
  t.like(nativeTranslator(wish()).translate(event), {kind: 'problem', status: 500, message: 'full'});
  t.like(nativeAssembly(wish()).take(event), {kind: 'problem', status: 500, message: 'full'});
});
