import {describeError, formatPolicy, parsePolicy} from '@hearsay/core';
import type {Cluster, OperatorChange, OperatorState} from '@hearsay/core';
import type {JsonObject} from './json.ts';
import {badRequest, isProblem, problemFrom} from './problem.ts';
import type {Problem} from './problem.ts';
import type {BodyRules} from './read-body.ts';
import {readObject} from './read-object.ts';
import type {Route} from './routes.ts';

/** What the owner of this node can say about it, and see that he has said. */
export function operatorRoutes(cluster: Cluster, rules: BodyRules): readonly Route[] {
  async function apply(change: OperatorChange | Problem): Promise<JsonObject | Problem> {
    if (isProblem(change)) return change;
    try {
      return stateBody(await cluster.operate(change));
    } catch (error) {
      return problemFrom(error);
    }
  }

  return [
    {method: 'GET', paths: ['/hearsay/v1/operator'], handle: () => stateBody(cluster.operator())},
    {
      method: 'POST',
      paths: ['/hearsay/v1/operator/change'],
      handle: async ({raw}) => {
        const body = await readObject(raw, rules);
        return isProblem(body) ? body : apply(flagChange(body['change']));
      },
    },
    {
      method: 'POST',
      paths: ['/hearsay/v1/policies'],
      handle: async ({raw}) => {
        const body = await readObject(raw, rules);
        return isProblem(body) ? body : apply(ruleChange(body));
      },
    },
  ];
}

function stateBody({draining, paused, rules}: OperatorState): JsonObject {
  return {draining, paused, policies: rules.map(({subject, policy}) => ({subject, policy: formatPolicy(policy)}))};
}

function flagChange(change: unknown): OperatorChange | Problem {
  if (change === 'drain' || change === 'undrain' || change === 'pause' || change === 'resume') return {kind: change};
  return badRequest('change must be drain, undrain, pause or resume', {param: 'change'});
}

/** A policy of null takes the rule away. */
function ruleChange({subject, policy}: JsonObject): OperatorChange | Problem {
  if (typeof subject !== 'string' || subject === '') return badRequest('subject is missing', {param: 'subject'});
  if (policy === null) return {kind: 'remove rule', subject};
  if (typeof policy !== 'string') return badRequest('policy must be a text or null', {param: 'policy'});
  try {
    return {kind: 'set rule', rule: {subject, policy: parsePolicy(policy)}};
  } catch (error) {
    return {...problemFrom(error), message: describeError(error), param: 'policy'};
  }
}
