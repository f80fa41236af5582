import test from 'ava';
import type {Capability, LoadedFacts} from '@hearsay/core';
import {nothingTold as silent} from '../../../test/support/builders.ts';
import {confirmCapabilities} from './confirm-capabilities.ts';

const cases: readonly (readonly [string, readonly Capability[], Partial<LoadedFacts>, readonly Capability[]])[] = [
  [
    'an engine that says nothing changes nothing',
    ['chat', 'completion', 'vision'],
    {},
    ['chat', 'completion', 'vision'],
  ],
  ['a projector that the engine cannot use lets nobody see', ['completion', 'vision'], {sees: false}, ['completion']],
  [
    'a sense that no header told of counts',
    ['completion'],
    {sees: true, hears: true},
    ['completion', 'vision', 'audio'],
  ],
  [
    'tools and thoughts are those of the template in use',
    ['chat', 'completion', 'tools'],
    {chatTemplate: '<think>', callsTools: false},
    ['chat', 'completion', 'thinking'],
  ],
  ['a stand-in for a missing template is none', ['completion'], {chatTemplate: 'x', callsTools: true}, ['completion']],
  [
    "the owner's template makes a model chat",
    ['completion'],
    {chatTemplate: 'x', isTemplateChosen: true, callsTools: true},
    ['chat', 'completion', 'tools'],
  ],
  ['without any template nobody chats', ['chat', 'completion', 'tools'], {chatTemplate: ''}, ['completion']],
  [
    'a model that only reads does not chat',
    ['embeddings'],
    {chatTemplate: 'x', isTemplateChosen: true},
    ['embeddings'],
  ],
];
for (const [title, expected, told, confirmed] of cases) {
  test(title, t => t.deepEqual(confirmCapabilities(expected, {...silent, ...told}), confirmed));
}
