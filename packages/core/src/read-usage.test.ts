import test from 'ava';
import {readUsage} from './read-usage.ts';

const timings =
  '"timings":{"cache_n":4,"prompt_n":8,"prompt_ms":2.5,"prompt_per_second":3200.5,"predicted_n":20,"predicted_per_second":81.25}';

test('timings alone tell all: read is what was evaluated and what was cached', t => {
  t.deepEqual(readUsage(`data: {"choices":[{"finish_reason":"stop"}],${timings}}\n\ndata: [DONE]\n\n`), {
    promptTokens: 12,
    cachedTokens: 4,
    outputTokens: 20,
    prefillTokensPerSecond: 3200.5,
    decodeTokensPerSecond: 81.25,
  });
});

test('usage wins over timings, and an answer that talks about usage changes nothing', t => {
  const usage =
    '"usage":{"completion_tokens":21,"prompt_tokens":13,"total_tokens":34,"prompt_tokens_details":{"cached_tokens":5}}';
  const talk = JSON.stringify({choices: [{delta: {content: '"usage":{"prompt_tokens":999}'}}]});
  t.like(readUsage(`data: {"x":1,${usage}}\n\ndata: ${talk}\n\n`), {
    promptTokens: 13,
    outputTokens: 21,
    cachedTokens: 5,
  });
});

test('a transcription counts in other words, and has no timings', t => {
  const usage =
    '"usage":{"type":"tokens","input_tokens":85,"output_tokens":10,"total_tokens":95,"input_tokens_details":{"cached_tokens":84}}';
  t.like(readUsage(`{"type":"transcript.text.done","text":" 1 2",${usage}}`), {
    promptTokens: 85,
    cachedTokens: 84,
    outputTokens: 10,
  });
});

test('an answer without counts has no usage', t => {
  t.is(readUsage('{"error":{"message":"no"}}'), undefined);
});
