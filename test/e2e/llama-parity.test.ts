import test from 'ava';
import {startDaemon} from '../support/daemon.ts';
import {startForeignServer} from '../support/foreign-server.ts';
import {differences, post, startPair} from '../support/llama-parity.ts';
import type {ParityCase} from '../support/llama-parity.ts';
import {modelFolder, tinyModel} from '../support/models.ts';

const prompt = 'count: 1 2 3';
const messages = [
  {role: 'system', content: 'You count.'},
  {role: 'user', content: 'count'},
];
const tools = [{type: 'function', function: {name: 'look', parameters: {type: 'object', properties: {}}}}];
/** A cached prompt would make the second of two equal requests differ from the first. */
const once = {cache_prompt: false, seed: 1};
const short = {...once, n_predict: 6};
const notAServerFault = 'facts: client-apis §2.1: clients repeat a 500, and the request is at fault';

/** llama-server tells the usage and times of one of several answers, the gateway those of all. */
const ofAll = ['usage', 'timings'];
/** What no node could make sense of is refused before any is asked, in other words. */
const words = ['message'];

const completions: readonly ParityCase[] = [
  post('a completion', '/completion', {...short, prompt}),
  post('a completion, streamed', '/completion', {...short, prompt, stream: true}),
  post('the other name of it', '/completions', {...short, prompt}),
  post('the tokens too', '/completion', {...short, prompt, return_tokens: true}),
  post('chosen fields', '/completion', {
    ...short,
    prompt,
    response_fields: ['content', 'generation_settings/n_predict', 'x'],
  }),
  post('chosen fields, streamed', '/completion', {
    ...short,
    prompt,
    stream: true,
    response_fields: ['content', 'stop_type'],
  }),
  post('probabilities', '/completion', {...short, prompt, n_probs: 3, temperature: 0}),
  post('probabilities, streamed', '/completion', {...short, prompt, n_probs: 3, temperature: 0, stream: true}),
  post('probabilities after sampling', '/completion', {...short, prompt, n_probs: 2, post_sampling_probs: true}),
  post('times with every token', '/completion', {...short, prompt, timings_per_token: true, stream: true}),
  post('progress of the prompt', '/completion', {...short, prompt, return_progress: true, stream: true}),
  post('a stop word', '/completion', {...short, n_predict: 40, prompt, stop: [' 9']}),
  post('a stop word, streamed', '/completion', {...short, n_predict: 40, prompt, stop: [' 9'], stream: true}),
  post('several prompts', '/completion', {...short, prompt: [prompt, 'count: 7 8']}),
  post('several answers', '/completion', {...short, prompt, n: 2}),
  post('a prompt of tokens', '/completion', {...short, prompt: [1, 336, 337]}),
  post('a prompt of tokens and texts', '/completion', {...short, prompt: [1, 336, 'count']}),
  post('a prompt in an object', '/completion', {...short, prompt: {prompt_string: prompt}}),
  post('a grammar', '/completion', {...short, prompt, grammar: 'root ::= "a"{5,5}'}),
  post('a schema', '/completion', {
    ...once,
    n_predict: 30,
    prompt,
    json_schema: {type: 'object', properties: {a: {type: 'integer'}}, required: ['a']},
  }),
  post('biases and samplers', '/completion', {
    ...short,
    prompt,
    logit_bias: [[' 4', -100]],
    samplers: ['top_k', 'temperature'],
    top_k: 5,
  }),
  post('biases in the form of OpenAI', '/completion', {...short, prompt, logit_bias: {'300': -5}}),
  post('no end of text', '/completion', {...short, prompt, ignore_eos: true}),
  post('nothing to predict', '/completion', {...once, n_predict: 0, prompt}),
  post('penalties and seeds', '/completion', {
    ...short,
    prompt,
    repeat_penalty: 1.1,
    repeat_last_n: 8,
    min_p: 0.1,
    mirostat: 2,
  }),
  post('a completion for OpenAI', '/v1/completions', {...short, prompt}),
  post('a completion for OpenAI, streamed', '/v1/completions', {...short, prompt, stream: true}),
  post('chances for OpenAI', '/v1/completions', {...once, max_tokens: 4, prompt, logprobs: 2, temperature: 0}),
  {
    ...post('several prompts for OpenAI', '/v1/completions', {...short, prompt: [prompt, 'count: 7 8']}),
    without: ofAll,
  },
  post('a gap', '/infill', {...short, input_prefix: '1 2 ', input_suffix: ' 5', prompt: ''}),
  post('a gap, streamed', '/infill', {...short, input_prefix: '1 2 ', input_suffix: ' 5', stream: true}),
  post('a gap with other files', '/infill', {
    ...short,
    input_prefix: '1',
    input_suffix: '5',
    input_extra: [{filename: 'a', text: '1'}],
  }),
];

const chats: readonly ParityCase[] = [
  post('a chat', '/chat/completions', {...once, max_tokens: 6, messages}),
  post('a chat, streamed', '/chat/completions', {...once, max_tokens: 6, messages, stream: true}),
  post('a chat, streamed with its usage', '/v1/chat/completions', {
    ...once,
    max_tokens: 6,
    messages,
    stream: true,
    stream_options: {include_usage: true},
  }),
  {...post('two answers', '/v1/chat/completions', {...once, max_tokens: 6, messages, n: 2}), without: ofAll},
  post('a chat, explained', '/v1/chat/completions', {...once, max_tokens: 6, messages, verbose: true}),
  post('chances', '/v1/chat/completions', {
    ...once,
    max_tokens: 4,
    messages,
    logprobs: true,
    top_logprobs: 2,
    temperature: 0,
  }),
  post('a form', '/v1/chat/completions', {
    ...once,
    max_tokens: 10,
    messages,
    response_format: {type: 'json_object', schema: {const: '42'}},
  }),
  post('a named schema', '/v1/chat/completions', {
    ...once,
    max_tokens: 10,
    messages,
    response_format: {type: 'json_schema', json_schema: {schema: {const: 'foo'}}},
  }),
  post('a grammar for a chat', '/v1/chat/completions', {
    ...once,
    max_tokens: 6,
    messages,
    grammar: 'root ::= "a"{5,5}',
  }),
  post('an answer begun', '/v1/chat/completions', {
    ...once,
    max_tokens: 6,
    messages: [...messages, {role: 'assistant', content: ' 1 2'}],
  }),
  ...[true, 'content'].flatMap(continued =>
    [
      ' 1 2',
      [
        {type: 'text', text: ' 1'},
        {type: 'text', text: ' 2'},
      ],
    ].flatMap(content =>
      [false, true].map(stream =>
        post(`an answer to continue (${String(continued)})`, '/v1/chat/completions', {
          ...once,
          max_tokens: 6,
          stream,
          add_generation_prompt: false,
          continue_final_message: continued,
          messages: [...messages, {role: 'assistant', content}],
        }),
      ),
    ),
  ),
  post('times with every token of a chat', '/v1/chat/completions', {
    ...once,
    max_tokens: 4,
    messages,
    stream: true,
    timings_per_token: true,
  }),
  post('tools for a model whose template knows none', '/v1/chat/completions', {
    ...once,
    max_tokens: 30,
    messages,
    tools,
  }),
  post('a count of tokens', '/chat/completions/input_tokens', {messages}),
  post('the prompt of a chat', '/apply-template', {messages}),
  post('tokens', '/tokenize', {content: 'count 1 2'}),
  post('tokens with their texts', '/tokenize', {content: 'Grüße 🤗', with_pieces: true, add_special: true}),
  post('tokens of nothing', '/tokenize', {}),
  post('text of tokens', '/detokenize', {tokens: [336, 337, 338]}),
];

const vectors: readonly ParityCase[] = [
  post('a vector', '/v1/embeddings', {input: 'count 1 2'}),
  post("a vector in llama-server's own form", '/embeddings', {input: 'count 1 2'}),
  post('a vector by the old name', '/embedding', {content: 'count 1 2'}),
  post('vectors of mixed inputs', '/v1/embeddings', {input: ['a', [12, 34, 56], [12, 'b']]}),
  post('a vector as base64', '/v1/embeddings', {input: 'count', encoding_format: 'base64'}),
  post('a vector of tokens', '/embedding', {input: [12, 34]}),
  {...post('a vector of nothing', '/v1/embeddings', {}), without: words},
  post('a vector in no known form', '/v1/embeddings', {input: 'x', encoding_format: 'odd'}),
];

const documents = ['a machine', 'learning is', 'machine learning'];
const ranks: readonly ParityCase[] = [
  post('a rank', '/rerank', {query: 'learning', documents}),
  post('a rank in the form of TEI', '/reranking', {query: 'learning', texts: documents}),
  post('the best of a rank', '/v1/rerank', {query: 'learning', documents, top_n: 2}),
  post('a rank of nothing', '/v1/reranking', {query: 'learning', documents: []}),
  post('a rank of numbers', '/rerank', {query: 'learning', documents: [1, 2]}),
  post('a rank of one number', '/rerank', {query: 'learning', documents: 123}),
  {...post('a rank without documents', '/rerank', {query: 'learning'}), without: words},
  {...post('a rank without a query', '/rerank', {documents}), without: words},
];

const looks: readonly ParityCase[] = [
  {
    title: 'health',
    method: 'GET',
    path: '/health',
    without: ['node', 'id', 'version', 'peers', 'models', 'loaded', 'in_flight'],
  },
  {title: 'slots', method: 'GET', path: '/slots'},
  {title: 'properties', method: 'GET', path: '/props'},
  {title: 'adapters', method: 'GET', path: '/lora-adapters'},
  {
    title: 'models',
    method: 'GET',
    path: '/models',
    differs: {status: 200, because: 'one list serves three dialects: facts, client-apis §2.4'},
  },
];

const faults: readonly ParityCase[] = [
  post('too long', '/completion', {...short, prompt: 'count '.repeat(1000)}),
  post('too long, streamed', '/completion', {...short, prompt: 'count '.repeat(1000), stream: true}),
  post('a chat that is too long', '/chat/completions', {messages: [{role: 'user', content: 'count '.repeat(1000)}]}),
  {...post('no prompt', '/completion', {}), without: words},
  post('an empty list of prompts', '/completion', {prompt: []}),
  post('a value out of range', '/completion', {...short, prompt, n_predict: -5}),
  post('more answers than slots', '/completion', {...short, prompt, n: 9}),
  post('a wrong grammar', '/v1/chat/completions', {messages, grammar: 'root ::= this is (not'}),
  post('a wrong form', '/v1/chat/completions', {messages, response_format: {type: 'sound'}}),
  post('a wrong schema', '/v1/chat/completions', {
    messages,
    response_format: {type: 'json_object', schema: {type: 'hiccup'}},
  }),
  post(
    'pictures that the model cannot see',
    '/completion',
    {...short, prompt: {prompt_string: 'x <__media__>', multimodal_data: ['AAAA']}},
    {status: 400, because: notAServerFault},
  ),
  {...post('no messages', '/chat/completions', {messages: null}), without: words},
  {...post('messages that are a text', '/chat/completions', {messages: 'string'}), without: words},
  post('a message that is a number', '/chat/completions', {messages: [123]}),
  post('an empty message', '/chat/completions', {messages: [{}]}),
  post('a strange extra file', '/infill', {
    input_prefix: '',
    input_suffix: '',
    input_extra: [{filename: 123, text: 'abc'}],
  }),
  post(
    'vectors of a model that writes',
    '/v1/embeddings',
    {input: 'x', model: 'tiny-count-F16'},
    {status: 400, because: notAServerFault},
  ),
  post('no JSON', '/completion', undefined, {status: 400, because: notAServerFault}),
];

/** Without a name in any request: the only model that can do it is meant. */
test.serial('whatever a plain llama-server answers, the gateway answers too', async t => {
  const {plain, gateway} = await startPair(t, 'tiny-count-F16');
  t.deepEqual(await differences([...looks, ...completions, ...chats, ...faults], plain, gateway), []);
});

test.serial('vectors and ranks too, where several models are known that each can do one thing', async t => {
  const files = ['tiny-count-F16.gguf', 'tiny-embed-F16.gguf', 'tiny-rerank-F16.gguf'];
  const {url} = await startDaemon(t, {models: [await modelFolder(t, ...files)]});
  const embedding = await startForeignServer(t, {
    model: tinyModel('tiny-embed-F16.gguf'),
    alias: 'tiny-embed-F16',
    flags: ['--embeddings'],
  });
  t.deepEqual(await differences(vectors, embedding.url, url), []);
  const ranking = await startForeignServer(t, {
    model: tinyModel('tiny-rerank-F16.gguf'),
    alias: 'tiny-rerank-F16',
    flags: ['--rerank'],
  });
  t.deepEqual(await differences(ranks, ranking.url, url), []);
});
