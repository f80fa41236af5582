import test from 'ava';
import type {ModelFacts, ModelPreset} from '@hearsay/core';
import {digest} from '../../../test/support/builders.ts';
import {presetsOf} from './presets-of.ts';

const preset = (name: string, system: string): ModelPreset => ({name, system, template: undefined, parameters: {}});

const holding = (local: boolean, names: ModelFacts['names'], ...presets: readonly ModelPreset[]) => ({
  node: {local},
  model: {digest: digest('a'), names, presets},
});

const theirs = holding(
  false,
  ['tiny:latest', 'pirate:latest'],
  preset('tiny:latest', 'x'),
  preset('pirate:latest', 'y'),
);

test("what another node's store sets for a name holds here, unless this node has the model by that name", t => {
  t.deepEqual(presetsOf([theirs]).presets, theirs.model.presets);
  t.deepEqual(presetsOf([holding(true, ['tiny']), theirs]).presets, [preset('pirate:latest', 'y')]);
  const own = preset('TINY:latest', 'mine');
  t.deepEqual(presetsOf([holding(true, ['TINY:latest'], own), theirs]).presets, [own, preset('pirate:latest', 'y')]);
  t.deepEqual(presetsOf([holding(true, ['tiny', 'pirate']), theirs]), {});
});
