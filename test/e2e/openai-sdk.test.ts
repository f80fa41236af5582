import test from 'ava';
import OpenAI from 'openai';
import {counted} from '../support/chat.ts';
import {busyWith, sharedModels, sharedTwoNodes} from '../support/two-nodes.ts';
import {until} from '../support/until.ts';

/** The same requests through a node that has the model and through one that has not: same outcome. */
const nodes = sharedTwoNodes();

function clients() {
  const {holder, entry} = nodes();
  return [holder, entry].map(({url}) => ({
    client: new OpenAI({baseURL: `${url}/v1`, apiKey: 'any', maxRetries: 0}),
    holder,
  }));
}

const messages = [{role: 'user' as const, content: 'count'}];

test.serial('S36: chat, streamed and whole, local and remote', async t => {
  for (const {client} of clients()) {
    const whole = await client.chat.completions.create({model: 'tiny-count-F16', messages, max_tokens: 8});
    t.is(whole.choices[0]?.message.content, counted(8));
    t.is(whole.choices[0]?.finish_reason, 'length');
    t.is(whole.usage?.completion_tokens, 8);
    t.is(whole.object, 'chat.completion');

    let text = '';
    const stream = await client.chat.completions.create({
      model: 'tiny-count-F16',
      messages,
      max_tokens: 8,
      stream: true,
      stream_options: {include_usage: true},
    });
    let usage = 0;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? '';
      usage = chunk.usage?.completion_tokens ?? usage;
    }
    t.is(text, counted(8));
    t.is(usage, 8);
  }
});

test.serial('completions, and a prompt that is continued', async t => {
  for (const {client} of clients()) {
    const whole = await client.completions.create({model: 'tiny-count-F16', prompt: ' 1 2 3', max_tokens: 3});
    t.is(whole.choices[0]?.text, ' 4 5 6');
    let text = '';
    const request = {model: 'tiny-count-F16', prompt: ' 1 2 3', max_tokens: 3, stream: true} as const;
    for await (const chunk of await client.completions.create(request)) text += chunk.choices[0]?.text ?? '';
    t.is(text, ' 4 5 6');
  }
});

test.serial('tool calls, streamed and whole', async t => {
  const tools = [
    {
      type: 'function' as const,
      function: {name: 'get_weather', parameters: {type: 'object', properties: {city: {type: 'string'}}}},
    },
  ];
  for (const {client} of clients()) {
    const whole = await client.chat.completions.create({model: 'tiny-tool-F16', messages, tools});
    const [call] = whole.choices[0]?.message.tool_calls ?? [];
    t.is(whole.choices[0]?.finish_reason, 'tool_calls');
    t.deepEqual(call?.type === 'function' ? JSON.parse(call.function.arguments) : undefined, {city: 'Paris'});

    let streamed = '';
    for await (const chunk of await client.chat.completions.create({
      model: 'tiny-tool-F16',
      messages,
      tools,
      stream: true,
    })) {
      streamed += chunk.choices[0]?.delta.tool_calls?.[0]?.function?.arguments ?? '';
    }
    t.deepEqual(JSON.parse(streamed), {city: 'Paris'});
  }
});

test.serial('the list of models, one of them, and an unknown one', async t => {
  for (const {client} of clients()) {
    const listed = await client.models.list();
    t.deepEqual(listed.data.map(({id}) => id).toSorted(), sharedModels);
    t.is((await client.models.retrieve('tiny-count-F16')).id, 'tiny-count-F16');
    await t.throwsAsync(client.models.retrieve('nobody/has:it'), {instanceOf: OpenAI.NotFoundError});
    await t.throwsAsync(client.chat.completions.create({model: 'nope', messages}), {instanceOf: OpenAI.NotFoundError});
  }
});

test.serial('C6: breaking from a stream and aborting a whole answer free the slot', async t => {
  for (const {client, holder} of clients()) {
    const busy = async () => busyWith(holder, 'tiny-deep-F16');
    const endless = {model: 'tiny-deep-F16', messages, max_tokens: 3000};
    for await (const chunk of await client.chat.completions.create({...endless, stream: true})) {
      t.is(chunk.object, 'chat.completion.chunk');
      break;
    }
    await until('the stream let go of its slot', async () => (await busy()) === 0, 2000);

    const controller = new AbortController();
    const whole = client.chat.completions.create(endless, {signal: controller.signal});
    await until('it runs', async () => (await busy()) === 1);
    controller.abort();
    await t.throwsAsync(whole, {instanceOf: OpenAI.APIUserAbortError});
    await until('the whole answer let go of its slot', async () => (await busy()) === 0, 2000);
  }
});

test.serial('R108: a prompt that is too long is a 400 that says so, local and remote', async t => {
  for (const {client} of clients()) {
    const long = [{role: 'user' as const, content: 'x '.repeat(5000)}];
    for (const stream of [false, true]) {
      const error = await t.throwsAsync(
        client.chat.completions.create({model: 'tiny-count-F16', messages: long, stream}),
        {
          instanceOf: OpenAI.BadRequestError,
        },
      );
      t.is(error?.code, 'context_length_exceeded');
    }
  }
});
