import test from 'ava';
import {isRequestMistake} from './request-mistakes.ts';

test('what is wrong with a request is told from what is wrong with an engine', t => {
  t.true(isRequestMistake('Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] column 3'));
  t.true(isRequestMistake('Failed to parse tools: Missing tool type: {}; tools = []'));
  t.true(isRequestMistake('"prompt" elements must be a string, a list of tokens, a JSON object'));
  t.false(isRequestMistake('Compute error.'));
  t.false(isRequestMistake('the engine said: Failed to parse tools: no'));
});
