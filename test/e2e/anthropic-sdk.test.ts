import test from 'ava';
import Anthropic from '@anthropic-ai/sdk';
import {counted} from '../support/chat.ts';
import type {Daemon} from '../support/daemon.ts';
import {engines} from '../support/reports.ts';
import {busyWith, sharedModels, sharedTwoNodes, startTwoNodes} from '../support/two-nodes.ts';
import type {TwoNodes} from '../support/two-nodes.ts';
import {until} from '../support/until.ts';

/** The same requests through a node that has the model and through one that has not: same outcome. */
const nodes = sharedTwoNodes({
  variables: {HEARSAY_ALIASES: 'claude-local=tiny-count-F16,claude-*=tiny-count-F16', HEARSAY_THREADS: '1'},
});

function clients({holder, entry}: TwoNodes = nodes()) {
  return [holder, entry].map(daemon => ({holder, daemon, client: clientOf(daemon)}));
}

function clientOf({url}: Daemon): Anthropic {
  return new Anthropic({baseURL: url, apiKey: 'any', maxRetries: 0});
}

const messages = [{role: 'user' as const, content: 'count'}];
const tool = {
  name: 'get_weather',
  input_schema: {type: 'object' as const, properties: {city: {type: 'string'}}},
};
const model = 'tiny-count-F16';

test.serial('messages, whole and streamed, local and remote', async t => {
  for (const {client} of clients()) {
    const whole = await client.messages.create({model, messages, max_tokens: 8});
    t.deepEqual(whole.content, [{type: 'text', text: counted(8)}]);
    t.like(whole, {type: 'message', role: 'assistant', model, stop_reason: 'max_tokens', stop_sequence: null});
    t.is(whole.usage.output_tokens, 8);
    t.true(whole.usage.input_tokens > 0);
    t.regex(whole.id, /^msg_/u);
    t.regex(whole._request_id ?? '', /^[0-9a-f]{24}$/u);

    const stream = client.messages.stream({model, messages, max_tokens: 8});
    const types: string[] = [];
    for await (const event of stream) types.push(event.type);
    t.is(await stream.finalText(), counted(8));
    t.like(await stream.finalMessage(), {model, stop_reason: 'max_tokens', usage: {output_tokens: 8}});
    t.deepEqual(types.slice(0, 3), ['message_start', 'content_block_start', 'content_block_delta']);
    t.deepEqual(types.slice(-3), ['content_block_stop', 'message_delta', 'message_stop']);
  }
});

test.serial('C58: tools, whole and streamed, and every choice of one', async t => {
  for (const {client} of clients()) {
    const ask = {model: 'tiny-tool-F16', messages, tools: [tool], max_tokens: 300};
    for (const choice of [{type: 'auto'}, {type: 'any'}, {type: 'tool', name: 'get_weather'}] as const) {
      const whole = await client.messages.create({...ask, tool_choice: choice});
      t.like(whole.content[0], {type: 'tool_use', name: 'get_weather', input: {city: 'Paris'}});
      t.is(whole.stop_reason, 'tool_use');
    }
    const streamed = await client.messages.stream(ask).finalMessage();
    t.like(streamed.content[0], {type: 'tool_use', name: 'get_weather', input: {city: 'Paris'}});

    const search = {type: 'web_search_20250305' as const, name: 'web_search' as const};
    await t.notThrowsAsync(client.messages.create({...ask, tools: [search]}), 'a tool that only Anthropic can run');
    const unknown = client.messages.create({...ask, tool_choice: {type: 'tool', name: 'nope'}});
    await t.throwsAsync(unknown, {instanceOf: Anthropic.BadRequestError});

    const id = 'toolu_1';
    const history = [
      ...messages,
      {role: 'assistant' as const, content: [{type: 'tool_use' as const, id, name: 'get_weather', input: {city: 'x'}}]},
      {role: 'user' as const, content: [{type: 'tool_result' as const, tool_use_id: id, content: 'sunny'}]},
    ];
    await t.notThrowsAsync(client.messages.create({...ask, messages: history}));
  }
});

test.serial('each block of an answer ends before the next begins, thinking too', async t => {
  for (const {client} of clients()) {
    const ask = {model: 'tiny-think-F16', messages, max_tokens: 300};
    const order: string[] = [];
    for await (const event of client.messages.stream(ask)) {
      if (event.type === 'content_block_start') order.push(`${event.index} ${event.content_block.type}`);
      if (event.type === 'content_block_stop') order.push(`${event.index} stop`);
    }
    t.deepEqual(order, ['0 thinking', '0 stop', '1 text', '1 stop']);
    const {content} = await client.messages.create(ask);
    t.deepEqual(
      content.map(({type}) => type),
      ['thinking', 'text'],
    );
    const silent = await client.messages.create({...ask, thinking: {type: 'disabled'}});
    t.is(silent.type, 'message');
  }
});

test.serial('what only newer clients send does no harm: betas, unknown fields, marks in the name', async t => {
  for (const {client, daemon} of clients()) {
    const odd = {context_management: {edits: []}, output_config: {effort: 'low' as const}, metadata: {user_id: 'u'}};
    const answer = await client.beta.messages.create(
      {
        ...odd,
        model: 'claude-haiku-4-5[1m]',
        betas: ['nobody-knows-2099-01-01'],
        max_tokens: 4,
        system: [{type: 'text', text: 'x-anthropic-billing-header: cch=abc', cache_control: {type: 'ephemeral'}}],
        messages: [{role: 'user', content: [{type: 'text', text: 'count', cache_control: {type: 'ephemeral'}}]}],
      },
      {headers: {'X-Claude-Code-Session-Id': 's'}},
    );
    t.like(answer.content[0], {text: counted(4)});
    t.is((await fetch(daemon.url, {method: 'HEAD'})).status, 200);
  }
});

test.serial('count_tokens counts where the model is loaded, estimates elsewhere, and never loads', async t => {
  const both = clients(await startTwoNodes(t, ['tiny-count-F16.gguf'], {variables: {HEARSAY_THREADS: '1'}}));
  for (const {client, holder} of both) {
    const {input_tokens: estimated} = await client.messages.countTokens({model, messages});
    t.true(estimated > 5 && estimated < 100, `${estimated}`);
    t.deepEqual(await engines(holder.url), [], 'nothing was loaded for it');
  }
  for (const {client, holder} of both) {
    const {usage} = await client.messages.create({model, messages, max_tokens: 1});
    await until('the slot is free', async () => (await engines(holder.url))[0]?.busy === 0);
    const counts = async () => client.messages.countTokens({model, messages}).withResponse();
    await until(
      'this node has heard that it is loaded',
      async () => (await counts()).response.headers.get('x-hearsay-reason') === 'counted',
    );
    const {data} = await counts();
    t.is(data.input_tokens, usage.input_tokens + (usage.cache_read_input_tokens ?? 0));
  }
  for (const {client} of both) {
    await t.throwsAsync(client.messages.countTokens({model: 'nope', messages}), {instanceOf: Anthropic.NotFoundError});
  }
});

test.serial('one list of models serves this client too, with the aliases that have a name', async t => {
  for (const {client} of clients()) {
    const {data, has_more: more} = await client.models.list({limit: 1000});
    t.deepEqual(data.map(({id}) => id).toSorted(), ['claude-local', ...sharedModels]);
    t.false(more);
    t.true(data.every(({type, created_at: at}) => type === 'model' && !Number.isNaN(Date.parse(at))));
    t.is((await client.models.retrieve('claude-local')).id, 'claude-local');
    await t.throwsAsync(client.models.retrieve('a/b'), {instanceOf: Anthropic.NotFoundError});
  }
});

test.serial('errors have the shape, the class and the words that clients know', async t => {
  for (const {client, daemon} of clients()) {
    const missing = await t.throwsAsync(client.messages.create({model: 'nope', messages, max_tokens: 1}), {
      instanceOf: Anthropic.NotFoundError,
    });
    t.like(missing?.error, {type: 'error', error: {type: 'not_found_error'}, request_id: missing?.requestID});

    const long = [{role: 'user' as const, content: 'x '.repeat(5000)}];
    for (const stream of [false, true]) {
      const error = await t.throwsAsync(client.messages.create({model, messages: long, max_tokens: 1, stream}), {
        instanceOf: Anthropic.BadRequestError,
      });
      t.regex(error?.message ?? '', /prompt is too long: \d+ tokens > 2048 maximum/u);
    }
    const unable = client.messages.create({model: 'tiny-embed-F16', messages, max_tokens: 1});
    await t.throwsAsync(unable, {instanceOf: Anthropic.BadRequestError, message: /tiny-embed-F16 cannot do this/u});

    for (const body of ['', '{"model":', '{"max_tokens":1}']) {
      const response = await fetch(`${daemon.url}/v1/messages?beta=true`, {method: 'POST', body});
      const answer: unknown = await response.json();
      t.is(response.status, 400);
      t.like(answer, {type: 'error', error: {type: 'invalid_request_error'}});
    }
  }
});

test.serial('C6, C7: a client that leaves frees the slot, streamed and whole, local and remote', async t => {
  for (const {client, holder} of clients()) {
    const busy = async () => busyWith(holder, 'tiny-deep-F16');
    const endless = {model: 'tiny-deep-F16', messages, max_tokens: 3000};
    for await (const event of client.messages.stream(endless)) if (event.type === 'content_block_delta') break;
    await until('the stream let go of its slot', async () => (await busy()) === 0);

    const controller = new AbortController();
    const whole = client.messages.create(endless, {signal: controller.signal, timeout: 60_000});
    await until('it runs', async () => (await busy()) === 1);
    controller.abort();
    await t.throwsAsync(whole, {instanceOf: Anthropic.APIUserAbortError});
    await until('the whole answer let go of its slot', async () => (await busy()) === 0);
  }
});
