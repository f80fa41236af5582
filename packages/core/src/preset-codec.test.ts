import test from 'ava';
import {digest, model} from '../../../test/support/builders.ts';
import {decodeInventory, encodeInventory} from './inventory-codec.ts';
import type {ModelPreset} from './model.ts';

const preset: ModelPreset = {
  name: 'm:latest',
  template: '{{ .Prompt }}',
  system: 'Be.',
  parameters: {stop: ['a'], top_k: 1},
};

function told(presets: readonly ModelPreset[]): readonly ModelPreset[] | undefined {
  const inventory = encodeInventory({models: [{...model('m', 'a'), digest: digest('a'), presets}]});
  return decodeInventory(inventory).models[0]?.presets;
}

test('peers hear what a store adds to a model, without its template', t => {
  t.deepEqual(told([preset]), [{...preset, template: undefined}]);
});

test('a preset that says nothing or too much is not told, and takes nothing from others', t => {
  t.is(told([{...preset, system: undefined, parameters: {}}]), undefined);
  t.is(told([{...preset, system: 'x'.repeat(5000)}]), undefined);
  t.deepEqual(told([{...preset, parameters: {stop: 'x'.repeat(2000)}}, preset])?.length, 1);
  t.is(told([{...preset, system: 'x'.repeat(20_000)}, preset])?.length, 1);
  t.true((told(Array.from({length: 40}, () => ({...preset, system: 'x'.repeat(3000)})))?.length ?? 99) < 8);
});
