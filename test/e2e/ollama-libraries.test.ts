import {AIMessage, HumanMessage} from '@langchain/core/messages';
import {tool} from '@langchain/core/tools';
import {ChatOllama, OllamaEmbeddings} from '@langchain/ollama';
import {embed, generateText, jsonSchema, streamText, tool as aiTool} from 'ai';
import test from 'ava';
import {createOllama} from 'ollama-ai-provider-v2';
import {counted} from '../support/chat.ts';
import {startTwoNodes} from '../support/two-nodes.ts';

/** Libraries that speak to Ollama in their own ways, through a node that has the model and one that has not. */
async function urls(t: Parameters<typeof startTwoNodes>[0], ...files: readonly string[]): Promise<readonly string[]> {
  const {holder, entry} = await startTwoNodes(t, files);
  return [holder.url, entry.url];
}

const city = {type: 'object', properties: {city: {type: 'string'}}, required: ['city']} as const;

test.serial("Vercel's ai: text, a stream, and an embedding", async t => {
  for (const url of await urls(t, 'tiny-count-F16.gguf', 'tiny-embed-F16.gguf')) {
    const ollama = createOllama({baseURL: `${url}/api`});
    const model = ollama('tiny-count-F16');
    // This library sends `maxOutputTokens` under a name that no Ollama knows.
    const six = {model, prompt: 'count', maxRetries: 0, providerOptions: {ollama: {options: {num_predict: 6}}}};
    const whole = await generateText(six);
    t.is(whole.text, counted(6));
    t.is(whole.finishReason, 'length');

    let text = '';
    const {textStream} = streamText(six);
    for await (const piece of textStream) text += piece;
    t.is(text, counted(6));

    const {embedding} = await embed({model: ollama.embeddingModel('tiny-embed-F16'), value: 'one'});
    t.is(embedding.length, 64);
  }
});

test.serial("Vercel's ai: a tool call and thinking", async t => {
  for (const url of await urls(t, 'tiny-tool-F16.gguf', 'tiny-think-F16.gguf')) {
    const ollama = createOllama({baseURL: `${url}/api`});
    const {toolCalls} = await generateText({
      model: ollama('tiny-tool-F16'),
      prompt: 'weather?',
      maxRetries: 0,
      tools: {get_weather: aiTool({description: 'weather', inputSchema: jsonSchema<{city: string}>({...city})})},
    });
    t.like(toolCalls[0], {toolName: 'get_weather', input: {city: 'Paris'}});

    const thought = await generateText({
      model: ollama('tiny-think-F16'),
      prompt: 'why',
      maxRetries: 0,
      providerOptions: {ollama: {think: true}},
    });
    t.is(thought.text.trim(), 'The answer is 42.');
    t.is(thought.reasoningText?.trim(), 'Let me think.');
  }
});

test.serial('LangChain: text, a stream, a tool call and embeddings', async t => {
  for (const url of await urls(t, 'tiny-count-F16.gguf', 'tiny-tool-F16.gguf', 'tiny-embed-F16.gguf')) {
    const count = new ChatOllama({baseUrl: url, model: 'tiny-count-F16', numPredict: 6, numCtx: 1024});
    const whole = await count.invoke([new HumanMessage('count')]);
    t.is(whole.content, counted(6));
    t.like(whole.usage_metadata, {output_tokens: 6});
    let text = '';
    for await (const piece of await count.stream([new HumanMessage('count')])) text += piece.text;
    t.is(text, counted(6));

    const weather = tool(() => '11', {name: 'get_weather', description: 'weather', schema: {...city}});
    const caller = new ChatOllama({baseUrl: url, model: 'tiny-tool-F16'}).bindTools([weather]);
    const called = await caller.invoke([new HumanMessage('weather?')]);
    t.true(called instanceof AIMessage);
    t.like(called.tool_calls?.[0], {name: 'get_weather', args: {city: 'Paris'}});

    const embeddings = new OllamaEmbeddings({baseUrl: url, model: 'tiny-embed-F16'});
    t.deepEqual(
      (await embeddings.embedDocuments(['one', 'two'])).map(({length}) => length),
      [64, 64],
    );
  }
});
