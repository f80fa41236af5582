import {chainModel} from './chain-model.ts';
import type {GgufContent} from './gguf-writer.ts';

/**
 * Tells what the tools are, how to call one and what came back, in the way of the Qwen family: llama-server finds out
 * how a model writes its calls by rendering its template with and without them.
 */
const toolTemplate = `{%- if tools %}
{{- '<|im_start|>system\\n' }}
{%- if messages[0].role == 'system' %}
{{- messages[0].content + '\\n\\n' }}
{%- endif %}
{{- 'These functions can be called:\\n<tools>' }}
{%- for tool in tools %}
{{- '\\n' + (tool | tojson) }}
{%- endfor %}
{{- '\\n</tools>\\nA call is one JSON object between two tags:\\n' }}
{{- '<tool_call>\\n{"name": NAME, "arguments": OBJECT}\\n</tool_call><|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}
{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}
{{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
{%- elif message.role != 'system' or not loop.first %}
{{- '<|im_start|>' + message.role + '\\n' }}
{%- if message.content %}
{{- message.content }}
{%- endif %}
{%- for call in message.tool_calls or [] %}
{{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) }}
{{- '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- endif %}
`;

/**
 * Closes the thinking at once when the client switches it off. Thoughts of earlier turns are not shown to the model
 * again.
 */
const thinkTemplate = `{%- for message in messages %}
{%- set content = message.content or '' %}
{%- if message.role == 'assistant' and '</think>' in content %}
{%- set content = content.split('</think>')[-1].lstrip('\\n') %}
{%- endif %}
{{- '<|im_start|>' + message.role + '\\n' }}
{%- if message.role == 'assistant' and message.reasoning_content and loop.last %}
{{- '<think>\\n' + message.reasoning_content.strip('\\n') + '\\n</think>\\n\\n' }}
{%- endif %}
{{- content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined and enable_thinking is false %}
{{- '<think>\\n\\n</think>' }}
{%- endif %}
{%- endif %}
`;

/**
 * Always calls `get_weather` for Paris, in tags that llama-server turns into `tool_calls` when the request names
 * tools.
 */
export function toolContent(): GgufContent {
  const call = [
    '<tool_call>\n',
    '{"name": ',
    '"get_weather", ',
    '"arguments": ',
    '{"city": ',
    '"Paris"',
    '}}',
    '\n</tool_call>',
  ];
  return scripted('Tiny Tool', call, toolTemplate);
}

/**
 * Always thinks "Let me think." and answers "The answer is 42."; only answers when the prompt ends with the end of its
 * thoughts.
 */
export function thinkContent(): GgufContent {
  const thought = ['<think>\n', 'Let', ' me', ' think.\n', '</think>', '\n\nThe', ' answer', ' is', ' 42.'];
  return scripted('Tiny Think', thought, thinkTemplate);
}

/** No piece may be what a prompt ends with, or the reply would begin in its middle. */
function scripted(name: string, pieces: readonly string[], template: string): GgufContent {
  return chainModel({
    name,
    pieces,
    score: () => -50, // prompts are cut into characters rather than into pieces of the reply
    template,
    insert: false,
    weights: 'F16',
    contextTokens: 4096,
    size: {width: 64, layers: 1, heads: 2, headsKv: 1, feedForward: 64},
    seed: 11,
  });
}
