import test from 'ava';
import type {ServerEvent} from './event-stream.ts';
import {parseObject} from './json.ts';
import {truncated} from './reply.ts';
import {responsesAssembly, responsesTranslator} from './responses-stream.ts';

/** Of an engine that holds a hundred tokens. */
const origin = {id: 'r1', atSeconds: 1, nowSeconds: () => 9, contextOfRun: () => 100};

/** The last event of a response that wrote so many tokens. */
function completed(tokens: number) {
  const item = {type: 'message', id: 'm1', role: 'assistant', status: 'completed', content: []};
  const usage = {input_tokens: 5, output_tokens: tokens, total_tokens: 5 + tokens};
  const response = {id: 'x', object: 'response', status: 'completed', output: [item], usage};
  return {name: 'response.completed', data: JSON.stringify({type: 'response.completed', response})};
}

function assembled(asked: object, tokens: number) {
  const assembly = responsesAssembly({...asked}, origin);
  assembly.take(completed(tokens));
  return assembly.result();
}

test('a response that max_output_tokens cut is incomplete and says why', t => {
  t.like(assembled({max_output_tokens: 3}, 3), {
    status: 'incomplete',
    incomplete_details: {reason: 'max_output_tokens'},
    output: [{status: 'incomplete'}],
  });
});

test('a response that ended by itself is completed', t => {
  for (const asked of [{max_output_tokens: 4}, {max_output_tokens: null}, {max_output_tokens: -1}, {}]) {
    const whole = {status: 'completed', incomplete_details: null, output: [{status: 'completed'}]};
    t.like(assembled(asked, 3), whole);
  }
});

test('a response says when it was completed, and one that was cut that it never was', t => {
  t.like(assembled({}, 3), {created_at: 1, completed_at: 9});
  t.like(assembled({max_output_tokens: 3}, 3), {completed_at: null});
});

test('reasoning that is done says so in the end, as the text does', t => {
  const assembly = responsesAssembly({}, origin);
  const output = [
    {type: 'reasoning', id: 'r1', content: []},
    {type: 'message', id: 'm1', status: 'completed'},
  ];
  const response = {status: 'completed', output, usage: {output_tokens: 1, total_tokens: 2}};
  assembly.take({name: 'response.completed', data: JSON.stringify({response})});
  t.like(assembly.result(), {
    output: [
      {id: 'r1', status: 'completed'},
      {id: 'm1', status: 'completed'},
    ],
  });
});

test('reasoning that is done says so in a stream too', t => {
  const translator = responsesTranslator({}, origin);
  const item = {type: 'reasoning', id: 'r1', content: []};
  translator.translate({name: 'response.output_item.done', data: JSON.stringify({item})});
  const text = translator.translate(completed(3));
  t.regex(typeof text === 'string' ? text : '', /^event: response\.output_item\.done\n.*"status":"completed"/u);
});

test('what the client has left empty is told as what is usual, of which clients take lists and objects for granted', t => {
  const left = {text: null, tools: null, metadata: null, reasoning: null};
  const usual = {text: {format: {type: 'text'}}, tools: [], metadata: {}, reasoning: {effort: null}};
  t.like(assembled(left, 3), usual);
  t.like(assembled({...left, text: {verbosity: 'low'}}, 3), {text: {format: {type: 'text'}, verbosity: 'low'}});
  t.like(assembled({text: {format: null}}, 3), {text: {format: {type: 'text'}}});
});

test('a response that filled the context is incomplete for the same reason, as OpenAI says it', t => {
  const cut = {status: 'incomplete', incomplete_details: {reason: 'max_output_tokens'}};
  t.like(assembled({}, 95), cut);
  t.like(assembled({max_output_tokens: 1000}, 95), cut);
  t.like(assembled({}, 94), {status: 'completed', incomplete_details: null});
  t.like(assembled({}, 96), {status: 'completed'}, 'it holds more than is known, or forgets what came first');
  const elsewhere = responsesAssembly({}, {...origin, contextOfRun: () => undefined});
  elsewhere.take(completed(95));
  t.like(elsewhere.result(), {status: 'completed'}, 'of an engine that nobody knows nothing is said');
});

test('a stream that max_output_tokens cut ends with response.incomplete, and is whole', t => {
  const translator = responsesTranslator({max_output_tokens: 3}, origin);
  const text = translator.translate(completed(3));
  t.regex(
    typeof text === 'string' ? text : '',
    /^event: response\.incomplete\ndata: \{"type":"response\.incomplete".*"reason":"max_output_tokens"/u,
  );
  t.true(translator.isWhole());
});

test("a client that asks for llama-server's own times or progress gets its end of a response too, cut or not", t => {
  for (const own of [{timings_per_token: true}, {return_progress: true}]) {
    const translator = responsesTranslator({max_output_tokens: 3, ...own}, origin);
    const text = translator.translate(completed(3));
    t.regex(typeof text === 'string' ? text : '', /^event: response\.completed\n[^]*"status":"completed"/u);
  }
});

test('the item that was cut says so too in a stream, and one before it does not', t => {
  const translator = responsesTranslator({max_output_tokens: 3}, origin);
  const done = (id: string): ServerEvent => {
    const item = {type: 'message', id, role: 'assistant', status: 'completed', content: []};
    return {name: 'response.output_item.done', data: JSON.stringify({type: 'response.output_item.done', item})};
  };
  const told = (event: ServerEvent): string => {
    const text = translator.translate(event);
    return typeof text === 'string' ? text : '';
  };
  const said = told(done('m0')) + told(done('m1')) + told(completed(3));
  const events = said.split('\n\n').flatMap(text => parseObject(text.replace(/^[^\n]*\ndata: /u, '')) ?? []);
  t.like(events, [
    {type: 'response.output_item.done', item: {id: 'm0', status: 'completed'}, sequence_number: 0, output_index: 0},
    {type: 'response.output_item.done', item: {id: 'm1', status: 'incomplete'}, sequence_number: 1, output_index: 1},
    {type: 'response.incomplete', sequence_number: 2},
  ]);
});

test('an item that was done before a stream broke is not lost', t => {
  const translator = responsesTranslator({}, origin);
  const item = {type: 'message', id: 'm0', status: 'completed', content: []};
  translator.translate({name: 'response.output_item.done', data: JSON.stringify({item})});
  const last = translator.failure({...truncated, message: 'gone'}, {});
  t.regex(last, /^event: response\.output_item\.done\n[^]*"completed"[^]*\n\nevent: response\.failed\n/u);
});
