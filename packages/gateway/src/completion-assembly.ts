import {Fault} from '@hearsay/core';
import type {Endpoint} from '@hearsay/core';
import {Aggregate} from './aggregate.ts';
import {openAiErrors} from './error-form.ts';
import {parseObject} from './json.ts';
import type {Assembly} from './object-reply.ts';
import {problemFromEvent} from './upstream-problem.ts';

/** OpenAI's chat and text completions, put together to one object. */
export function completionAssembly(endpoint: Endpoint, answersPerPrompt: number, begun: string): Assembly {
  const aggregate = new Aggregate(endpoint, answersPerPrompt, begun);
  let isWhole = false;
  return {
    errors: openAiErrors,
    take({data}) {
      if (data === '[DONE]') {
        isWhole = true;
        return undefined;
      }
      if (data === 'null') return undefined; // llama-server's sign of life where one of several answers begins
      const event = parseObject(data);
      if (event === undefined) throw new Fault('ENGINE_FAILED', 'the answer has an event that is not JSON');
      const problem = problemFromEvent(event);
      if (problem === undefined) aggregate.add(event);
      return problem;
    },
    result: () => (isWhole ? aggregate.result() : undefined),
  };
}
