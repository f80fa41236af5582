import test from 'ava';
import {cacheTypesOf, checkOwnArguments, copiesWeights} from './own-arguments.ts';

for (const argument of [
  '--host',
  '--port',
  '--api-key',
  '-m',
  '--model',
  '-c',
  '--ctx-size',
  '-np',
  '--parallel',
  '-hf',
]) {
  test(`an owner's own ${argument} is refused, and the message says what to do instead`, t => {
    const fault = t.throws(() => checkOwnArguments(['-ngl', '9', argument, '1'], 'engine.extra_args'));
    t.regex(fault?.message ?? '', new RegExp(`^engine\\.extra_args must not have ${argument}: \\w`, 'u'));
    t.throws(() => checkOwnArguments([`${argument}=1`], 'x'));
  });
}

test('other arguments are the owner’s business', t => {
  t.notThrows(() => checkOwnArguments(['-ngl', '99', '--flash-attn', 'on', '-ctk', 'q8_0', '-t', '-1'], 'x'));
});

test('the types of the cache are read from the arguments, the last one wins', t => {
  t.deepEqual(cacheTypesOf([]), {keyType: 'f16', valueType: 'f16'});
  t.deepEqual(cacheTypesOf(['-ctk', 'q8_0', '--cache-type-v', 'q4_0']), {keyType: 'q8_0', valueType: 'q4_0'});
  t.is(cacheTypesOf(['-ctk', 'q8_0', '-ctk', 'f16']).keyType, 'f16');
  t.is(cacheTypesOf(['-ctk', 'nonsense']).keyType, 'f16');
  t.true(copiesWeights(['-ngl', '0']));
  t.false(copiesWeights(['--no-repack']));
});
