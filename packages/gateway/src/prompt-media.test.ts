import test from 'ava';
import {picture, recording} from '../../../test/support/media.ts';
import {promptNeeds} from './prompt-media.ts';

const [image, sound] = [picture(), recording(0.1)].map(file => file.toString('base64'));

test('a prompt with pictures needs a model that sees, one with recordings a model that hears', t => {
  const shown = (...media: readonly unknown[]): object => ({prompt_string: 'x', multimodal_data: media});
  t.deepEqual(promptNeeds(shown(image)), ['vision']);
  t.deepEqual(promptNeeds(shown(sound)), ['audio']);
  t.deepEqual(promptNeeds(['x', shown(sound), shown(image)]), ['vision', 'audio']);
  for (const prompt of ['x', [1, 2], [1, 'x'], shown(), shown(7), {prompt_string: 'x'}, null, undefined]) {
    t.deepEqual(promptNeeds(prompt), []);
  }
});
