import type {FastifyRequest} from 'fastify';
import {capabilities, describeError, parsePolicy} from '@hearsay/core';
import type {Capability, Cluster} from '@hearsay/core';
import {badRequest, isProblem, problemFrom} from './problem.ts';
import type {Problem} from './problem.ts';
import type {Route} from './routes.ts';
import {wildcard} from './wildcard.ts';

/** Lines of one answer unless the question says otherwise. */
const listedRequests = 50;
const listedRequestsMax = 1000;

/** What people can ask about requests: which there were, why they ran where they ran, and where one would run. */
export function journalRoutes(cluster: Cluster): readonly Route[] {
  return [
    {
      method: 'GET',
      paths: ['/hearsay/v1/requests'],
      handle: request => {
        const query = queryOf(request);
        const countMax = wholeNumber(query, 'limit', listedRequestsMax) ?? listedRequests;
        const after = wholeNumber(query, 'after', Number.MAX_SAFE_INTEGER);
        if (isProblem(countMax)) return countMax;
        if (isProblem(after)) return after;
        return {requests: cluster.requests({countMax, after})};
      },
    },
    {
      method: 'GET',
      paths: ['/hearsay/v1/why/*'],
      handle: request => {
        const id = wildcard(request).toLowerCase();
        const report = cluster.why(id);
        return report === undefined ? unknownRequest(id) : {...report};
      },
    },
    {
      method: 'GET',
      paths: ['/hearsay/v1/route'],
      handle: request => {
        const query = queryOf(request);
        const promptBytes = wholeNumber(query, 'prompt_bytes', Number.MAX_SAFE_INTEGER) ?? 0;
        if (isProblem(promptBytes)) return promptBytes;
        const model = query.get('model') ?? '';
        const policy = query.get('policy');
        const needs = needsOf(query);
        if (isProblem(needs)) return needs;
        try {
          return {
            ...cluster.route({model, needs, policy: policy === null ? undefined : parsePolicy(policy), promptBytes}),
          };
        } catch (error) {
          return {...problemFrom(error), message: describeError(error)};
        }
      },
    },
  ];
}

function unknownRequest(id: string): Problem {
  const shown = JSON.stringify(id.slice(0, 40));
  return badRequest(
    `this node knows no request ${shown}, or more than one; see: hearsay requests. ` +
      'Ask the node where it entered: the answer header x-hearsay-request carries its id',
    {status: 404, code: 'request_not_found'},
  );
}

function queryOf({url}: FastifyRequest): URLSearchParams {
  return new URL(url, 'http://node').searchParams;
}

function wholeNumber(query: URLSearchParams, name: string, max: number): number | undefined | Problem {
  const text = query.get(name);
  if (text === null) return undefined;
  const value = Number(text);
  if (/^\d+$/u.test(text) && value <= max) return value;
  return badRequest(`${name} must be a whole number up to ${max}`, {param: name});
}

function needsOf(query: URLSearchParams): readonly Capability[] | Problem {
  const words = (query.get('needs') ?? '').split(',').filter(word => word !== '');
  const known = words.flatMap(word => capabilities.find(capability => capability === word) ?? []);
  if (known.length === words.length) return known;
  return badRequest(`needs must be a list of ${capabilities.join(', ')}`, {param: 'needs'});
}
