import {isObject} from '@hearsay/core';
import type {LoadedFacts} from '@hearsay/core';

/** Pure: what the answer of llama-server to `GET /props` says of the model; whatever is not as expected says nothing. */
export function readProps(answer: unknown, ownArguments: readonly string[]): LoadedFacts {
  const modalities = field(answer, 'modalities');
  const caps = field(answer, 'chat_template_caps');
  const context = field(field(answer, 'default_generation_settings'), 'n_ctx');
  const template = field(answer, 'chat_template');
  // A second template, for requests with tools only.
  const hasToolTemplate = typeof field(answer, 'chat_template_tool_use') === 'string';
  return {
    context: typeof context === 'number' && Number.isSafeInteger(context) && context > 0 ? context : undefined,
    sees: truth(field(modalities, 'vision')),
    hears: truth(field(modalities, 'audio')),
    chatTemplate: typeof template === 'string' ? template : undefined,
    isTemplateChosen: ownArguments.some(word => /^--chat-template(?:-file)?(?:=|$)/u.test(word)),
    callsTools: hasToolTemplate || truth(field(caps, 'supports_tools')),
  };
}

function field(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

function truth(value: unknown): boolean | undefined {
  return typeof value === 'boolean' ? value : undefined;
}
