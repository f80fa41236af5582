import test from 'ava';
import {storedModel} from '../../../test/support/engine-trial.ts';
import {unmatchedTables} from './unmatched-tables.ts';

const models = [storedModel('qwen3:4b', '/q'), storedModel('tiny:latest', '/t')];

test('a table for a model that is there says nothing, however its name is written', t => {
  t.deepEqual(unmatchedTables(['QWEN3:4b', 'tiny'], models), []);
});

test('a table for no model is told, with the name that was probably meant', t => {
  const [near, far] = unmatchedTables(['qwne3:4b', 'gpt'], models);
  t.is(near, '[models."qwne3:4b"] in the config is for no model of this machine (yet); did you mean qwen3:4b?');
  t.regex(far ?? '', /for no model of this machine \(yet\); see: hearsay models$/u);
});
