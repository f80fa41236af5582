import test from 'ava';
import {Ollama} from 'ollama';
import OpenAI from 'openai';
import {counted} from '../support/chat.ts';
import {startDaemon} from '../support/daemon.ts';
import {modelFolder} from '../support/models.ts';
import {models} from '../support/reports.ts';
import {busyWith, sharedTwoNodes, startTwoNodes} from '../support/two-nodes.ts';
import type {TwoNodes} from '../support/two-nodes.ts';
import {until} from '../support/until.ts';

/** The same requests through a node that has the models and through one that has not: same outcome. */
const nodes = sharedTwoNodes();

function clients({holder, entry}: TwoNodes = nodes()) {
  return [holder, entry].map(({url}) => ({client: new Ollama({host: url}), url, holder}));
}

const messages = [{role: 'user', content: 'count'}];
const question = [{role: 'user' as const, content: 'count'}];
const count = 'tiny-count-F16';

test.serial('S99: chat, streamed and whole, local and remote', async t => {
  for (const {client} of clients()) {
    const options = {num_predict: 8, seed: -1, repeat_last_n: -1, stop: ['never']};
    const whole = await client.chat({model: count, messages, options});
    t.like(whole, {model: count, done: true, done_reason: 'length', eval_count: 8});
    t.deepEqual({...whole.message}, {role: 'assistant', content: counted(8)});
    t.true(whole.total_duration > whole.eval_duration && whole.eval_duration > 0 && whole.prompt_eval_count > 5);
    t.true(Date.parse(String(whole.created_at)) > 0);

    let text = '';
    let last: {done_reason?: string; eval_count?: number} = {};
    for await (const part of await client.chat({model: `${count}:latest`, messages, options, stream: true})) {
      text += part.message.content;
      last = part;
    }
    t.is(text, counted(8));
    t.like(last, {done_reason: 'length', eval_count: 8});
  }
});

test.serial('generate: with a template, raw, with a suffix, whole and streamed, local and remote', async t => {
  for (const {client} of clients()) {
    const options = {num_predict: 3};
    t.is((await client.generate({model: count, prompt: 'go', system: 'be', options})).response, counted(3));
    const raw = await client.generate({model: count, prompt: ' 1 2 3', raw: true, options});
    t.like(raw, {response: ' 4 5 6', done: true, done_reason: 'length', eval_count: 3});
    const filled = await client.generate({model: count, prompt: ' 1 2', suffix: ' 9', options});
    t.like(filled, {response: counted(3), done_reason: 'length', eval_count: 3});
    let text = '';
    for await (const part of await client.generate({
      model: count,
      prompt: ' 1 2',
      suffix: ' 9',
      options,
      stream: true,
    })) {
      text += part.response;
    }
    t.is(text, counted(3));
  }
});

test.serial('tool calls have their arguments as objects, and their results find the way back', async t => {
  const tools = [
    {
      type: 'function',
      function: {
        name: 'get_weather',
        description: 'weather',
        parameters: {type: 'object', properties: {city: {type: 'string'}}},
      },
    },
  ];
  for (const {client} of clients()) {
    const model = 'tiny-tool-F16';
    const {message, done_reason: reason} = await client.chat({model, messages, tools});
    t.is(reason, 'stop');
    t.like(message.tool_calls?.[0]?.function, {name: 'get_weather', arguments: {city: 'Paris'}});

    const streamed = [];
    for await (const part of await client.chat({model, messages, tools, stream: true})) {
      streamed.push(...(part.message.tool_calls ?? []));
    }
    t.is(streamed.length, 1);
    t.deepEqual(streamed[0]?.function.arguments, {city: 'Paris'});

    const answer = {role: 'tool', content: '11 degrees', tool_name: 'get_weather'};
    const again = await client.chat({model, messages: [...messages, message, answer], tools});
    t.true(again.done);
  }
});

test.serial('thinking comes apart from the answer, and only from models that think', async t => {
  for (const {client} of clients()) {
    const {message} = await client.chat({model: 'tiny-think-F16', messages, think: true});
    t.is(message.thinking?.trim(), 'Let me think.');
    t.is(message.content.trim(), 'The answer is 42.');
    let thought = '';
    for await (const part of await client.generate({model: 'tiny-think-F16', prompt: 'why', stream: true})) {
      thought += part.thinking ?? '';
    }
    t.is(thought.trim(), 'Let me think.');
    await t.throwsAsync(client.chat({model: count, messages, think: true}), {
      message: `"${count}" does not support thinking`,
    });
  }
});

test.serial('format: an answer in JSON, and in the shape of a schema', async t => {
  const schema = {type: 'object', properties: {a: {type: 'integer'}}, required: ['a']};
  for (const {client} of clients()) {
    const {message} = await client.chat({model: count, messages, format: schema, options: {num_predict: 200}});
    const answer: unknown = JSON.parse(message.content);
    t.is(typeof Object(answer).a, 'number');
  }
});

test.serial('embed and embeddings, local and remote', async t => {
  for (const {client} of clients()) {
    const model = 'tiny-embed-F16';
    const {embeddings, prompt_eval_count: tokens} = await client.embed({model, input: ['one', 'two three']});
    t.deepEqual(
      embeddings.map(({length}) => length),
      [64, 64],
    );
    t.true(tokens > 3);
    t.true(Math.abs(Math.hypot(...(embeddings[0] ?? [])) - 1) < 1e-3);
    const [short] = (await client.embed({model, input: 'one', dimensions: 16})).embeddings;
    t.is(short?.length, 16);
    t.true(Math.abs(Math.hypot(...(short ?? [])) - 1) < 1e-6);
    const {embedding} = await client.embeddings({model, prompt: 'one'});
    t.is(embedding.length, 64);
    t.true(Math.hypot(...embedding) > 2, 'not normalized');
    t.deepEqual((await client.embed({model, input: ''})).embeddings, []);
    const long = 'word '.repeat(6000);
    t.is((await client.embed({model, input: [long, 'short']})).embeddings.length, 2);
    await t.throwsAsync(client.embed({model, input: long, truncate: false}), {
      message: 'the input length exceeds the context length',
    });
  }
});

test.serial('load, ps, show and unload', async t => {
  for (const {client, holder, url} of clients(await startTwoNodes(t, ['tiny-count-F16.gguf']))) {
    t.like(await client.generate({model: count, prompt: ''}), {response: '', done: true, done_reason: 'load'});
    const running = await until('the node has heard that it is loaded', async () => {
      const {models: all} = await client.ps();
      return all.length > 0 ? all : undefined;
    });
    t.like(running[0], {name: `${count}:latest`, model: `${count}:latest`});
    t.true(Date.parse(String(running[0]?.expires_at)) > Date.now());
    t.true((running[0]?.digest.length ?? 0) === 64 && (running[0]?.size ?? 0) > 1000);
    const shown = await client.show({model: count});
    t.deepEqual(shown.capabilities, ['completion', 'insert'], JSON.stringify(shown));
    t.like(shown.details, {format: 'gguf', family: 'llama', quantization_level: 'F16'});
    t.is(Reflect.get(shown.model_info, 'llama.context_length'), 2048);
    if (url === holder.url) {
      t.like(await client.chat({model: count, messages: [], keep_alive: 0}), {done: true, done_reason: 'unload'});
      await until('it is unloaded', async () => (await client.ps()).models.length === 0);
    }
  }
});

test.serial('C55: tags lists every model of the mesh with a tag, and each listed name works', async t => {
  for (const {client} of clients(await startTwoNodes(t, ['tiny-count-F16.gguf', 'tiny-other-Q4_0.gguf']))) {
    const {models: listed} = await client.list();
    t.deepEqual(listed.map(({name}) => name).toSorted(), ['tiny-count-F16:latest', 'tiny-other-Q4_0:latest']);
    for (const {name} of listed) {
      for (const spelling of [name, name.toUpperCase(), name.replace(':latest', '')]) {
        t.true((await client.chat({model: spelling, messages, options: {num_predict: 1}})).done, spelling);
      }
    }
  }
});

test.serial("an unknown model is a 404 in Ollama's words, on every path", async t => {
  for (const {client} of clients()) {
    const model = 'nope';
    const notFound = {name: 'ResponseError', message: "model 'nope' not found"};
    for (const call of [
      () => client.chat({model, messages}),
      () => client.chat({model, messages, stream: true}),
      () => client.generate({model, prompt: 'x'}),
      () => client.show({model}),
      () => client.delete({model}),
    ]) {
      t.like(await t.throwsAsync(call, notFound), {status_code: 404});
    }
    await t.throwsAsync(client.embed({model, input: 'x'}), {message: 'model "nope" not found, try pulling it first'});
    await t.throwsAsync(client.copy({source: model, destination: 'x'}), {message: 'model "nope" not found'});
    await t.throwsAsync(client.pull({model}), {message: /^pull model manifest: file does not exist/u});
  }
});

test.serial('pull of a known model succeeds, with progress and without', async t => {
  for (const {client} of clients()) {
    t.deepEqual({...(await client.pull({model: count}))}, {status: 'success'} as object);
    const said: string[] = [];
    for await (const {status} of await client.pull({model: count, stream: true})) said.push(status);
    t.deepEqual([said[0], said.at(-1)], ['pulling manifest', 'success']);
  }
});

test.serial('create, copy and delete make and remove names with presets, which outlive the daemon', async t => {
  const folder = await modelFolder(t, 'tiny-count-F16.gguf');
  const first = await startDaemon(t, {models: [folder]});
  const client = new Ollama({host: first.url});
  await until('the model is known', async () => (await models(first.url)).length === 1);
  const made = await client.create({model: 'three', from: count, system: 'be', parameters: {num_predict: 3}});
  t.is(made.status, 'success');
  await client.copy({source: 'three', destination: 'drei:v1'});
  for (const model of ['three', 'THREE:latest', 'drei:v1']) {
    t.is((await client.chat({model, messages})).message.content, counted(3));
  }
  t.is((await client.chat({model: 'three', messages, options: {num_predict: 1}})).message.content, ' 1');
  t.like(await client.show({model: 'three'}), {system: 'be'});
  const openAi = new OpenAI({baseURL: `${first.url}/v1`, apiKey: 'any', maxRetries: 0});
  for (const model of ['three', 'three:latest']) {
    t.is((await openAi.chat.completions.create({model, messages: question})).choices[0]?.message.content, counted(3));
    t.is((await openAi.models.retrieve(model)).object, 'model');
  }
  t.true((await openAi.models.list()).data.some(({id}) => id === 'three'));
  await client.delete({model: 'drei:v1'});
  await t.throwsAsync(client.chat({model: 'drei:v1', messages}), {message: "model 'drei:v1' not found"});
  await t.throwsAsync(client.delete({model: count}), {message: /does not delete files/u});
  await first.stop();

  const second = await startDaemon(t, {models: [folder], dataFolder: first.dataFolder});
  const again = new Ollama({host: second.url});
  await until('the model is known', async () => (await models(second.url)).length === 1);
  t.deepEqual((await again.list()).models.map(({name}) => name).toSorted(), ['three:latest', `${count}:latest`]);
});

test.serial('C6, C7: aborting a stream and a whole answer free the slot, local and remote', async t => {
  for (const {client, url, holder} of clients()) {
    const busy = async () => busyWith(holder, 'tiny-deep-F16');
    const endless = {model: 'tiny-deep-F16', messages, options: {num_predict: 3000}};
    const stream = await client.chat({...endless, stream: true});
    for await (const part of stream) {
      t.false(part.done);
      break;
    }
    stream.abort();
    await until('the stream let go of its slot', async () => (await busy()) === 0, 5000);

    const controller = new AbortController();
    const {signal} = controller;
    const abortable = new Ollama({host: url, fetch: (input, init) => fetch(input, {...init, signal})});
    const whole = abortable.chat(endless);
    await until('it runs', async () => (await busy()) === 1);
    controller.abort();
    await t.throwsAsync(whole, {name: 'AbortError'});
    await until('the whole answer let go of its slot', async () => (await busy()) === 0, 5000);
  }
});

test.serial('a conversation that is too long loses its oldest messages, unless that is forbidden', async t => {
  for (const {client} of clients()) {
    const old = Array.from({length: 8}, (_, index) => ({role: 'user', content: `old ${index} ${'x '.repeat(300)}`}));
    const long = [{role: 'system', content: 'be'}, ...old, ...messages];
    const {message} = await client.chat({model: count, messages: long, options: {num_predict: 3}});
    t.is(message.content, counted(3));
    const strict = {model: count, messages: long, truncate: false};
    t.like(await t.throwsAsync(client.chat(strict), {message: /exceeds the available context size/u}), {
      status_code: 400,
    });
  }
});
