import test from 'ava';
import {explainMissing} from './explain-missing.ts';

const size = {slots: 1, context: 2048};
const lack = {name: 'm', size, needBytes: 6e9, keptBytes: 0, machineBytes: 64e9, allowedBytes: 64e9};
const need = 'm needs at least 6.0 GB of memory for 1 slot of 2048 tokens';

test('a machine that is too small is told as that', t => {
  const text = explainMissing({...lack, machineBytes: 4e9, allowedBytes: 2e9, canHaveBytes: 2e9});
  t.is(text, `${need}, and models can have 4.0 GB here: 2.0 GB are missing`);
});

test('where the owner allows less than the machine has, that is what to change', t => {
  const text = explainMissing({...lack, allowedBytes: 1e9, canHaveBytes: 1e9});
  t.is(text, `${need}, and engine.memory lets models have 1.0 GB here: 5.0 GB are missing; raise it`);
});

test('R84: where other programs have the memory, they are to blame', t => {
  const text = explainMissing({...lack, canHaveBytes: 5e9});
  t.is(text, `${need}, but other programs leave only 5.0 GB here: 1.0 GB are missing; end some of them`);
});

test('R99: where models have the memory that their owner keeps, they are what to stop', t => {
  const text = explainMissing({...lack, keptBytes: 2e9, canHaveBytes: 5e9});
  t.is(text, `${need}, but models that are kept loaded leave only 5.0 GB here: 1.0 GB are missing; stop one of them`);
});
