import test from 'ava';
import {createOpenAICompatible} from '@ai-sdk/openai-compatible';
import {HumanMessage} from '@langchain/core/messages';
import {ChatOpenAI, OpenAIEmbeddings} from '@langchain/openai';
import {embed, generateText, jsonSchema, streamText, tool} from 'ai';
import {counted} from '../support/chat.ts';
import {startTwoNodes} from '../support/two-nodes.ts';

/** Frameworks that speak OpenAI's dialect in their own way, through a node with the models and one without. */
const files = ['tiny-count-F16.gguf', 'tiny-tool-F16.gguf', 'tiny-embed-F16.gguf'];

test.serial('Vercel AI SDK: text, stream, tool call and embedding', async t => {
  const {holder, entry} = await startTwoNodes(t, files);
  for (const {url} of [holder, entry]) {
    const provider = createOpenAICompatible({name: 'hearsay', baseURL: `${url}/v1`, includeUsage: true});
    const ask = {model: provider('tiny-count-F16'), prompt: 'count', maxOutputTokens: 6, maxRetries: 0};
    const {text, finishReason, usage} = await generateText(ask);
    t.deepEqual([text, finishReason, usage.outputTokens], [counted(6), 'length', 6]);

    const streamed = streamText(ask);
    t.is(await streamed.text, counted(6));
    t.is((await streamed.usage).outputTokens, 6);

    const inputSchema = jsonSchema<{city: string}>({type: 'object', properties: {city: {type: 'string'}}});
    const {toolCalls} = await generateText({
      model: provider('tiny-tool-F16'),
      prompt: 'weather',
      tools: {get_weather: tool({inputSchema})},
      maxRetries: 0,
    });
    t.like(toolCalls[0], {toolName: 'get_weather', input: {city: 'Paris'}});

    const {embedding} = await embed({model: provider.embeddingModel('tiny-embed-F16'), value: 'x', maxRetries: 0});
    t.true(embedding.length > 8);
  }
});

test.serial('LangChain: text, stream, tool call and embedding', async t => {
  const {holder, entry} = await startTwoNodes(t, files);
  for (const {url} of [holder, entry]) {
    const options = {apiKey: 'any', maxRetries: 0, configuration: {baseURL: `${url}/v1`}};
    const chat = new ChatOpenAI({...options, model: 'tiny-count-F16', maxTokens: 6});
    t.is((await chat.invoke([new HumanMessage('count')])).text, counted(6));
    let text = '';
    for await (const chunk of await chat.stream('count')) text += chunk.text;
    t.is(text, counted(6));

    const schema = {type: 'object' as const, properties: {city: {type: 'string' as const}}};
    const armed = new ChatOpenAI({...options, model: 'tiny-tool-F16'}).bindTools([
      {type: 'function', function: {name: 'get_weather', parameters: schema}},
    ]);
    t.like((await armed.invoke('weather')).tool_calls?.[0], {name: 'get_weather', args: {city: 'Paris'}});

    const vectors = new OpenAIEmbeddings({...options, model: 'tiny-embed-F16'});
    t.true((await vectors.embedQuery('x')).length > 8);
  }
});
