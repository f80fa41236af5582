import test from 'ava';
import {nothingTold as nothing} from '../../../test/support/builders.ts';
import {readProps} from './read-props.ts';

test('an engine tells its context, senses, template and tools', t => {
  const answer = {
    default_generation_settings: {n_ctx: 256},
    modalities: {vision: true, video: false, audio: false},
    chat_template: '{{ messages }}',
    chat_template_caps: {supports_tools: true},
  };
  t.deepEqual(readProps(answer, ['--chat-template-file', 'x.jinja']), {
    context: 256,
    sees: true,
    hears: false,
    chatTemplate: '{{ messages }}',
    isTemplateChosen: true,
    callsTools: true,
  });
});

test('a template of its own for tools is as good as one that knows them', t => {
  t.true(readProps({chat_template_tool_use: 'x', chat_template_caps: {supports_tools: false}}, []).callsTools);
});

for (const answer of [undefined, null, 'no', 7, [], {}, {modalities: 1, default_generation_settings: {n_ctx: -1}}]) {
  test(`an engine that answers ${JSON.stringify(answer)} says nothing`, t => {
    t.deepEqual(readProps(answer, []), nothing);
  });
}
