import test from 'ava';
import {remembered} from './remembered.ts';

test('a text is only looked at once, a long one each time, and no more than a few hundred are kept', t => {
  const seen: string[] = [];
  const length = remembered(text => {
    seen.push(text);
    return text.length;
  });
  for (let round = 0; round < 3; round += 1) t.is(length('/v1/models'), 10);
  t.deepEqual(seen, ['/v1/models']);
  const long = 'x'.repeat(10_000);
  for (let round = 0; round < 3; round += 1) t.is(length(long), 10_000);
  t.is(seen.filter(text => text === long).length, 3);
  for (let each = 0; each < 1000; each += 1) length(`/${each}`);
  length('/v1/models');
  t.is(seen.filter(text => text === '/v1/models').length, 2);
});
