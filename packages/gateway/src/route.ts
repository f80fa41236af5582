import type {FastifyReply, FastifyRequest} from 'fastify';
import type {JsonObject} from './json.ts';
import type {Problem} from './problem.ts';

type Answered = JsonObject | Problem | Promise<JsonObject | Problem>;

/** One thing that the gateway serves. */
export interface Route {
  readonly method: 'GET' | 'POST';
  /** Every spelling; the first is the one that people are told. */
  readonly paths: readonly string[];
  readonly handle: (request: FastifyRequest, reply: FastifyReply) => Answered | Promise<void>;
}

/** What stands for the `*` of a path. */
export function wildcard({params}: FastifyRequest): string {
  const text: unknown = typeof params === 'object' && params !== null && '*' in params ? params['*'] : '';
  return typeof text === 'string' ? text : '';
}
