import test from 'ava';
import {digest} from '../../../../test/support/builders.ts';
import {modelReport} from '../../../../test/support/scripted-cluster.ts';
import type {JsonObject} from '../json.ts';
import type {FindModel, Preset} from './known-model.ts';
import {readRequest} from './read-request.ts';
import type {Form, OllamaCall} from './read-request.ts';

const messages = [{role: 'user', content: 'hi'}];
const report = modelReport({capabilities: ['chat', 'completion', 'insert', 'thinking', 'tools']});
const find: FindModel = asked =>
  asked === 'tiny' ? {kind: 'known', asked, target: 'tiny', report, preset: undefined} : undefined;
const findSimple: FindModel = asked => ({
  kind: 'known',
  asked,
  target: asked,
  report: modelReport(),
  preset: undefined,
});

function read(body: JsonObject, form: Form = 'chat', finder: FindModel = find): OllamaCall {
  const call = readRequest({model: 'tiny', ...body}, form, finder);
  if (call.kind === 'problem') throw new Error(call.message);
  return call;
}

test('a stream is what clients get who do not say, and upstream is always one', t => {
  t.true(read({messages}).stream);
  t.true(read({messages, stream: null}).stream);
  t.false(read({messages, stream: false}).stream);
  t.like(read({messages, stream: false}).body, {stream: true, cache_prompt: true, messages});
});

for (const [what, body, form, kind] of [
  ['a chat without messages', {messages: []}, 'chat', 'load'],
  ['a chat with no list at all', {}, 'chat', 'load'],
  ['a chat without messages and keep_alive 0', {messages: [], keep_alive: 0}, 'chat', 'unload'],
  ['a chat with messages and keep_alive 0', {messages, keep_alive: 0}, 'chat', 'run'],
  ['an empty prompt', {prompt: ''}, 'generate', 'load'],
  ['no prompt', {keep_alive: '10m'}, 'generate', 'load'],
  ['an empty prompt and keep_alive "0s"', {prompt: '', keep_alive: '0s'}, 'generate', 'unload'],
  ['a prompt', {prompt: 'x'}, 'generate', 'run'],
  ['only a suffix', {prompt: '', suffix: 'x'}, 'generate', 'run'],
] as const) {
  test(`${what} means ${kind}`, t => t.is(read(body, form).kind, kind));
}

for (const [what, body, endpoint, sent] of [
  ['a prompt', {prompt: 'x', system: 'be'}, '/v1/chat/completions', {messages: [{role: 'system'}, {content: 'x'}]}],
  ['a raw prompt', {prompt: 'x', raw: true}, '/v1/completions', {prompt: 'x'}],
  ['a suffix', {prompt: 'a', suffix: 'b'}, '/infill', {input_prefix: 'a', input_suffix: 'b'}],
] as const) {
  test(`generate sends ${what} to ${endpoint}`, t => {
    const call = read(body, 'generate');
    t.is(call.endpoint, endpoint);
    t.like(call.body, sent);
  });
}

test('a model without a chat template continues the prompt', t => {
  const bare: FindModel = asked => ({
    kind: 'known',
    asked,
    target: asked,
    report: modelReport({capabilities: ['completion']}),
    preset: undefined,
  });
  t.is(read({prompt: 'x'}, 'generate', bare).endpoint, '/v1/completions');
});

for (const [what, body, sent] of [
  ['format json', {format: 'json'}, {response_format: {type: 'json_object'}}],
  [
    'a schema',
    {format: {type: 'object'}},
    {response_format: {type: 'json_schema', json_schema: {schema: {type: 'object'}}}},
  ],
  ['think true', {think: true}, {chat_template_kwargs: {enable_thinking: true}}],
  ['think false', {think: false}, {chat_template_kwargs: {enable_thinking: false}}],
  ['think max', {think: 'max'}, {chat_template_kwargs: {enable_thinking: true, reasoning_effort: 'high'}}],
  ['logprobs', {logprobs: true}, {logprobs: true, top_logprobs: 1}],
  ['more logprobs', {logprobs: true, top_logprobs: 4}, {logprobs: true, top_logprobs: 4}],
] as const) {
  test(`${what} is passed on as llama-server knows it`, t => t.like(read({messages, ...body}).body, sent));
}

for (const format of ['', null, undefined]) {
  test(`format ${JSON.stringify(format) ?? 'left out'} is none`, t => {
    t.false('response_format' in read({messages, format}).body);
  });
}

test('C60: tools pass as they are, whatever their schemas hold', t => {
  const tools = [{type: 'function', function: {name: 'f', parameters: {type: ['object', 'null'], properties: []}}}];
  const call = read({messages, tools});
  t.deepEqual(call.body['tools'], tools);
  t.true(call.needs.includes('tools'));
});

for (const [what, body, form, message] of [
  ['no model', {model: ''}, 'chat', /^model is required$/u],
  ['an unknown model', {model: 'nope'}, 'chat', /^model 'nope' not found$/u],
  ['a bad keep_alive', {messages, keep_alive: true}, 'chat', /^keep_alive true is no duration/u],
  [
    'a bad format',
    {messages, format: 'xml'},
    'chat',
    /^invalid format: "xml"; expected "json" or a valid JSON Schema/u,
  ],
  ['a bad think', {messages, think: 'hard'}, 'chat', /^invalid think value/u],
  ['too many logprobs', {messages, top_logprobs: 21}, 'chat', /^top_logprobs must be between 0 and 20$/u],
  ['options of the wrong kind', {messages, options: 'x'}, 'chat', /^options is not an object$/u],
  [
    'raw with a system text',
    {prompt: 'x', raw: true, system: 'y'},
    'generate',
    /^raw mode does not support template, /u,
  ],
  ['raw with a context', {prompt: 'x', raw: true, context: [1]}, 'generate', /^raw mode does not support template, /u],
  [
    'an image in raw mode',
    {prompt: 'x', raw: true, images: ['/9j/4AAQ']},
    'generate',
    /images are only possible without raw/u,
  ],
  ['an image in a gap', {prompt: 'x', suffix: 'y', images: ['/9j/4AAQ']}, 'generate', /without raw and suffix/u],
  ['a template', {prompt: 'x', template: '{{ .Prompt }}'}, 'generate', /template/u],
] as const) {
  test(`${what} is refused`, t => {
    const problem = readRequest({model: 'tiny', ...body}, form, find);
    t.is(problem.kind, 'problem');
    t.regex(problem.kind === 'problem' ? problem.message : '', message);
  });
}

for (const [what, body, form, message] of [
  ['thinking', {messages, think: true}, 'chat', '"tiny" does not support thinking'],
  ['tools', {messages, tools: [{}]}, 'chat', 'tiny does not support tools'],
  ['insertion', {prompt: 'x', suffix: 'y'}, 'generate', '"tiny" does not support insert'],
  ['seeing', {prompt: 'x', images: ['/9j/4AAQ']}, 'generate', '"tiny" does not support vision'],
] as const) {
  test(`${what} of a model without it is a 400 in Ollama's words`, t => {
    t.like(readRequest({model: 'tiny', ...body}, form, findSimple), {kind: 'problem', status: 400, message});
  });
}

test('what the first model of a name lacks, another one of that name may have', t => {
  const seeing = modelReport({capabilities: ['chat', 'completion', 'vision']});
  const two: FindModel = (asked, needs = []) => ({
    kind: 'known',
    asked,
    target: asked,
    report: needs.includes('vision') ? seeing : modelReport(),
    preset: undefined,
  });
  t.is(read({prompt: 'x', images: ['/9j/4AAQ']}, 'generate', two).model.report, seeing);
});

test('what runs instead is asked for by its digest, in its own words and with its own context', t => {
  const preset = (system: string): Preset => ({
    name: 'tiny',
    from: 'tiny',
    system,
    parameters: {},
    messages: [],
    license: '',
    madeWallMs: 0,
  });
  const seeing = modelReport({
    digest: digest('d'),
    contextMax: 16_384,
    capabilities: ['chat', 'completion', 'vision', 'tools'],
  });
  const bare = modelReport({digest: digest('c'), contextMax: 2048, capabilities: ['completion']});
  const two: FindModel = (asked, needs = []) => ({
    kind: 'known',
    asked,
    target: asked,
    ...(needs.length > 0 ? {report: seeing, preset: preset('see')} : {report: bare, preset: preset('write')}),
  });
  for (const [form, body] of [
    ['generate', {prompt: 'x', images: ['/9j/4AAQ']}],
    ['chat', {messages, tools: [{}]}],
  ] as const) {
    const call = read({...body, options: {num_ctx: 16_384}}, form, two);
    t.like(call, {endpoint: '/v1/chat/completions', contextTokens: 16_384, model: {target: digest('d')}});
    t.like(call.body['messages'], [{role: 'system', content: 'see'}]);
  }
  t.is(read({prompt: 'x'}, 'generate', two).model.target, 'tiny');
  const one: FindModel = asked => two(asked);
  const problem = readRequest({model: 'tiny', prompt: 'x', images: ['/9j/4AAQ']}, 'generate', one);
  t.like(problem, {kind: 'problem', message: '"tiny" does not support chat'});
});

test('a preset is said first and set first, and the request has the last word', t => {
  const preset: Preset = {
    name: 'mine',
    from: 'tiny',
    system: 'be kind',
    parameters: {num_predict: 3, temperature: 0},
    messages: [{role: 'user', content: 'before'}],
    license: '',
    madeWallMs: 0,
  };
  const withPreset: FindModel = asked => ({kind: 'known', asked, target: 'tiny', report, preset});
  const call = read({model: 'mine', messages, options: {temperature: 1}}, 'chat', withPreset);
  t.like(call.body, {n_predict: 3, temperature: 1});
  t.like(call.body['messages'], [{role: 'system', content: 'be kind'}, {content: 'before'}, {content: 'hi'}]);
  const own = read({model: 'mine', messages: [{role: 'system', content: 'be short'}, ...messages]}, 'chat', withPreset);
  t.like(own.body['messages'], [{content: 'before'}, {role: 'system', content: 'be short'}, {content: 'hi'}]);
});
