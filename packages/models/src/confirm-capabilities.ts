import {capabilities} from '@hearsay/core';
import type {Capability, LoadedFacts} from '@hearsay/core';
import {letsThink} from './describe-gguf.ts';

/**
 * Pure: what a model can do, after an engine has loaded it: what the engine says goes before what the header lets
 * expect. A stand-in for a missing chat template counts for nothing, and models that only read have no use for one.
 */
export function confirmCapabilities(expected: readonly Capability[], told: LoadedFacts): readonly Capability[] {
  if (!expected.includes('completion')) return expected;
  const can = new Set(expected);
  const correct = (capability: Capability, isSo: boolean | undefined): void => {
    if (isSo === true) can.add(capability);
    if (isSo === false) can.delete(capability);
  };
  correct('vision', told.sees);
  correct('audio', told.hears);
  const {chatTemplate, isTemplateChosen, callsTools} = told;
  if (chatTemplate !== undefined && (isTemplateChosen || can.has('chat') || chatTemplate === '')) {
    const isThere = chatTemplate !== '';
    correct('chat', isThere);
    correct('tools', isThere ? callsTools : false);
    correct('thinking', letsThink(chatTemplate));
  }
  return capabilities.filter(capability => can.has(capability));
}
