import type {FastifyRequest} from 'fastify';

/** What stands for the `*` of a path. */
export function wildcard({params}: FastifyRequest): string {
  const text: unknown = typeof params === 'object' && params !== null && '*' in params ? params['*'] : '';
  return typeof text === 'string' ? text : '';
}
