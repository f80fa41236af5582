import test from 'ava';
import OpenAI from 'openai';
import {counted} from '../support/chat.ts';
import {engines} from '../support/reports.ts';
import {busyWith, sharedTwoNodes, startTwoNodes} from '../support/two-nodes.ts';
import type {TwoNodes} from '../support/two-nodes.ts';
import {until} from '../support/until.ts';

/** Everything of OpenAI besides chat: the same through a node that has the model and through one that has not. */
const nodes = sharedTwoNodes();

function clients({holder, entry}: TwoNodes = nodes()) {
  return [holder, entry].map(({url}) => ({
    url,
    holder,
    client: new OpenAI({baseURL: `${url}/v1`, apiKey: 'any', maxRetries: 0}),
  }));
}

const model = 'tiny-count-F16';
const tools = [
  {
    type: 'function' as const,
    name: 'get_weather',
    parameters: {type: 'object', properties: {city: {type: 'string'}}},
    strict: false,
  },
];

test.serial('a response, whole and streamed', async t => {
  for (const {client} of clients()) {
    const ask = {model, input: 'count', max_output_tokens: 8};
    const whole = await client.responses.create({...ask, instructions: 'be brief', metadata: {a: 'b'}});
    t.is(whole.output_text, counted(8));
    t.like(whole, {object: 'response', status: 'incomplete', model, instructions: 'be brief', metadata: {a: 'b'}});
    t.deepEqual(whole.incomplete_details, {reason: 'max_output_tokens'});
    t.is(whole.usage?.output_tokens, 8);
    t.is(whole.error, null);

    let text = '';
    const numbers: number[] = [];
    for await (const event of await client.responses.create({...ask, stream: true})) {
      numbers.push(event.sequence_number);
      if (event.type === 'response.output_text.delta') text += event.delta;
    }
    t.is(text, counted(8));
    t.deepEqual(numbers, [...numbers.keys()], 'events are numbered one by one');
    const final = await client.responses.stream(ask).finalResponse();
    t.like(final, {output_text: counted(8), status: 'incomplete'});
  }
});

test.serial('a response that fills the context ends as incomplete, whole and streamed', async t => {
  for (const {client} of clients()) {
    const ask = {model, input: 'x '.repeat(900)}; // leaves room for some 200 of 400 numbers
    const whole = await client.responses.create(ask);
    t.like(whole, {status: 'incomplete', incomplete_details: {reason: 'max_output_tokens'}});
    t.is(whole.usage?.total_tokens, 2048);
    t.is(whole.output_text, counted(whole.usage?.output_tokens ?? 0));
    const types: string[] = [];
    for await (const event of await client.responses.create({...ask, stream: true})) types.push(event.type);
    t.is(types.at(-1), 'response.incomplete');
    t.like(await client.responses.create({model, input: 'x'}), {status: 'completed', incomplete_details: null});
  }
});

test.serial('a response with a tool call, and with reasoning', async t => {
  for (const {client} of clients()) {
    const ask = {model: 'tiny-tool-F16', input: 'count', tools};
    const whole = await client.responses.create(ask);
    t.like(whole.output[0], {type: 'function_call', name: 'get_weather', status: 'completed'});
    const called: string[] = [];
    for await (const event of client.responses.stream(ask)) {
      if (event.type === 'response.function_call_arguments.done') called.push(event.arguments);
    }
    t.deepEqual(
      called.map(text => JSON.parse(text)),
      [{city: 'Paris'}],
    );

    const thought = await client.responses.stream({model: 'tiny-think-F16', input: 'count'}).finalResponse();
    t.deepEqual(
      thought.output.map(({type}) => type),
      ['reasoning', 'message'],
    );
    t.is(thought.output_text, 'The answer is 42.');
  }
});

test.serial('a conversation goes on with reasoning and tools in its input', async t => {
  for (const {client} of clients()) {
    const answer = await client.responses.create({
      model,
      max_output_tokens: 2,
      store: false,
      include: ['reasoning.encrypted_content'],
      input: [
        {role: 'developer', content: 'x'},
        {role: 'user', content: 'count'},
        {type: 'reasoning', id: 'r', summary: [], encrypted_content: 'secret'},
        {type: 'function_call', call_id: 'c', name: 'get_weather', arguments: '{"city":"x"}'},
        {type: 'function_call_output', call_id: 'c', output: 'sunny'},
      ],
    });
    t.is(answer.status, 'incomplete');
    t.is(answer.usage?.output_tokens, 2);
  }
});

test.serial('the tokens of an input are counted', async t => {
  for (const {client, url} of clients()) {
    const {input_tokens: tokens} = await client.responses.inputTokens.count({model, input: 'count'});
    t.true(tokens > 5);
    const response = await fetch(`${url}/v1/chat/completions/input_tokens`, {
      method: 'POST',
      body: JSON.stringify({model, messages: [{role: 'user', content: 'count'}]}),
    });
    t.like(await response.json(), {input_tokens: tokens});
  }
});

test.serial('what a response cannot do here is a 400 that names the field', async t => {
  for (const {client} of clients()) {
    const ask = {model, input: 'x'};
    for (const [param, odd] of [
      ['previous_response_id', {...ask, previous_response_id: 'resp_1'}],
      ['background', {...ask, background: true}],
    ] as const) {
      const error = await t.throwsAsync(client.responses.create(odd), {instanceOf: OpenAI.BadRequestError});
      t.is(error?.param, param);
    }
    const long = client.responses.create({model, input: 'x '.repeat(5000), stream: true});
    t.like(await t.throwsAsync(long, {instanceOf: OpenAI.BadRequestError}), {code: 'context_length_exceeded'});
  }
});

test.serial('C54: embeddings are the same as numbers and as base64, which the SDK asks for by itself', async t => {
  for (const {client} of clients()) {
    const ask = {model: 'tiny-embed-F16', input: ['one', 'two']};
    const encoded = await client.embeddings.create(ask);
    const plain = await client.embeddings.create({...ask, encoding_format: 'float'});
    t.deepEqual(
      encoded.data.map(({index}) => index),
      [0, 1],
    );
    t.true(encoded.usage.prompt_tokens > 0);
    for (const [index, {embedding}] of encoded.data.entries()) {
      const floats = plain.data[index]?.embedding ?? [];
      t.is(embedding.length, floats.length);
      t.true(embedding.every((value, at) => Math.abs(value - (floats[at] ?? NaN)) < 1e-6));
    }
  }
});

test.serial('documents are ranked, under each of the paths that clients use', async t => {
  for (const {url} of clients()) {
    for (const path of ['/v1/rerank', '/rerank', '/v1/reranking', '/reranking']) {
      const body = JSON.stringify({model: 'tiny-rerank-F16', query: 'a', documents: ['b', 'c', 'd']});
      const response = await fetch(url + path, {method: 'POST', body});
      const {results}: {results: {index: number; relevance_score: number}[]} = await response.json();
      t.is(response.status, 200);
      t.deepEqual(
        results.map(({index}) => index).toSorted((a, b) => a - b),
        [0, 1, 2],
      );
    }
  }
});

test.serial('a model that cannot do what is asked is a 400 that says so, not something to try again', async t => {
  for (const {client, holder} of clients(await startTwoNodes(t, ['tiny-count-F16.gguf', 'tiny-embed-F16.gguf']))) {
    const messages = [{role: 'user' as const, content: 'x'}];
    const file = new File(['RIFF'], 'a.wav');
    const image = {type: 'image_url' as const, image_url: {url: 'data:image/png;base64,AAAA'}};
    for (const ask of [
      client.embeddings.create({model, input: 'x'}),
      client.chat.completions.create({model: 'tiny-embed-F16', messages}),
      client.audio.transcriptions.create({model, file}),
      client.chat.completions.create({model, messages: [{role: 'user', content: [image]}]}),
    ]) {
      const error = await t.throwsAsync(ask, {instanceOf: OpenAI.BadRequestError});
      t.regex(error?.message ?? '', /cannot do this: it lacks (?:embeddings|chat|audio|vision)$/u);
    }
    t.deepEqual(await engines(holder.url), [], 'nothing was loaded to find that out');
  }
});

test.serial('what llama-server calls its own fault but is that of the request is a 400', async t => {
  for (const {client} of clients()) {
    const called = {id: 'c', type: 'function', function: {name: 'f', arguments: '{not json'}} as const;
    const messages = [
      {role: 'assistant' as const, tool_calls: [called]},
      {role: 'tool' as const, tool_call_id: 'c', content: 'x'},
    ];
    for (const [ask, words] of [
      [client.chat.completions.create({model: 'tiny-tool-F16', messages}), /arguments as JSON/u],
      [client.chat.completions.create({model: 'tiny-tool-F16', messages, stream: true}), /arguments as JSON/u],
      [client.post('/embeddings', {body: {model: 'tiny-embed-F16', input: {a: 1}}}), /must be a string/u],
    ] as const) {
      const error = await t.throwsAsync(ask, {instanceOf: OpenAI.BadRequestError});
      t.regex(error?.message ?? '', words);
    }
  }
});

test.serial('C6: a client that leaves a response frees the slot', async t => {
  for (const {client, holder} of clients()) {
    const busy = async () => busyWith(holder, 'tiny-deep-F16');
    const endless = {model: 'tiny-deep-F16', input: 'count', max_output_tokens: 3000};
    for await (const event of await client.responses.create({...endless, stream: true})) {
      if (event.type === 'response.output_text.delta') break;
    }
    await until('the stream let go of its slot', async () => (await busy()) === 0);
    const controller = new AbortController();
    const whole = client.responses.create(endless, {signal: controller.signal});
    await until('it runs', async () => (await busy()) === 1);
    controller.abort();
    await t.throwsAsync(whole, {instanceOf: OpenAI.APIUserAbortError});
    await until('the whole answer let go of its slot', async () => (await busy()) === 0);
  }
});
