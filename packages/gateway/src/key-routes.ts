import {describeError, formatPolicy} from '@hearsay/core';
import type {Key} from '@hearsay/core';
import type {JsonObject} from './json.ts';
import type {KeyRing} from './key-ring.ts';
import {badRequest, isProblem, problemFrom} from './problem.ts';
import type {Problem} from './problem.ts';
import type {BodyRules} from './read-body.ts';
import {readObject} from './read-object.ts';
import type {Route} from './routes.ts';

/** The keys of this node: to see, to make, to take back. A secret is in the answer that made it and nowhere else. */
export function keyRoutes(ring: KeyRing, rules: BodyRules): readonly Route[] {
  return [
    {method: 'GET', paths: ['/hearsay/v1/keys'], handle: () => ({keys: ring.list().map(keyBody)})},
    {
      method: 'POST',
      paths: ['/hearsay/v1/keys/create'],
      handle: async ({raw}) => {
        const body = await readObject(raw, rules);
        if (isProblem(body)) return body;
        return attempt(async () => {
          const {key, secret} = await ring.create(body);
          return {...keyBody(key), secret};
        });
      },
    },
    {
      method: 'POST',
      paths: ['/hearsay/v1/keys/revoke'],
      handle: async ({raw}) => {
        const body = await readObject(raw, rules);
        if (isProblem(body)) return body;
        const {name} = body;
        if (typeof name !== 'string') return badRequest('name is missing', {param: 'name'});
        return attempt(async () => {
          await ring.revoke(name);
          return {revoked: true};
        });
      },
    },
  ];
}

async function attempt(act: () => Promise<JsonObject>): Promise<JsonObject | Problem> {
  try {
    return await act();
  } catch (error) {
    return {...problemFrom(error), message: describeError(error)};
  }
}

function keyBody({name, createdWallMs, rights, policy, perMinute, admin}: Key): JsonObject {
  return {name, createdWallMs, ...rights, policy: policy && formatPolicy(policy), perMinute, admin};
}
