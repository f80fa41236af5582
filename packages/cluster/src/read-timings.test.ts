import test from 'ava';
import fc from 'fast-check';
import {TimingsReader} from './read-timings.ts';

const timings =
  '{"cache_n":120,"prompt_n":40,"prompt_ms":200.5,"prompt_per_second":199.5,"predicted_n":10,"predicted_ms":500,' +
  '"predicted_per_second":20}';
const told = {cachedTokens: 120, promptTokens: 40, promptMs: 200.5, outputTokens: 10, outputMs: 500};
const answer = `data: {"choices":[{"delta":{"content":"a"}}]}\n\ndata: {"choices":[],"timings":${timings}}\n\ndata: [DONE]\n\n`;

function read(chunks: readonly string[]): TimingsReader {
  const reader = new TimingsReader();
  for (const chunk of chunks) reader.read(Buffer.from(chunk));
  return reader;
}

test('finds the timings of an answer, wherever its chunks are cut', t => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(answer.length), {maxLength: 8}), cuts => {
      const points = [0, ...cuts.toSorted((a, b) => a - b), answer.length];
      const chunks = points.slice(1).map((point, index) => answer.slice(points[index], point));
      t.deepEqual(read(chunks).timings(), told);
    }),
  );
});

test('a model that writes timings itself is not believed', t => {
  const text = JSON.stringify({choices: [{delta: {content: `"timings":${timings}`}}]});
  t.is(read([`data: ${text}\n\n`]).timings(), undefined);
});

test('an answer without timings has none, and neither has a damaged one', t => {
  t.is(read(['data: {"x":1}\n\n', 'data: [DONE]\n\n']).timings(), undefined);
  t.is(read([`"timings":{"cache_n":`, 'x}']).timings(), undefined);
});

test('of several timings the last ones count', t => {
  t.is(read([`{"timings":{"predicted_n":1}}`, `{"timings":{"predicted_n":2}}`]).timings()?.outputTokens, 2);
});
