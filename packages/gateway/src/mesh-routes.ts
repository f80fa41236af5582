import type {IncomingMessage} from 'node:http';
import type {Clock, MeshAdmin, MeshReport} from '@hearsay/core';
import {isLoopback} from './front-door.ts';
import type {HeldBodies} from './held-bodies.ts';
import {parseObject} from './json.ts';
import type {JsonObject} from './json.ts';
import {badRequest, isProblem} from './problem.ts';
import type {Problem} from './problem.ts';
import {readBody} from './read-body.ts';
import type {Route} from './routes.ts';

/** Joining may dial several addresses that do not answer. */
const joinMsMax = 45_000;

/** An invite that lies around is a key that lies around. */
const inviteSecondsDefault = 24 * 60 * 60;
const inviteSecondsMax = 30 * 24 * 60 * 60;

/** An invite code is the longest thing that is sent here. */
const bodyBytesMax = 64 * 1024;

interface MeshService {
  readonly mesh?: MeshAdmin | undefined;
  readonly clock: Clock;
  readonly bodies: HeldBodies;
}

/** Who may be in the mesh: for people on this machine only, whoever else may use the gateway. */
export function meshRoutes({mesh, clock, bodies}: MeshService): readonly Route[] {
  if (mesh === undefined) return [];
  const post = (name: string, act: (body: JsonObject) => Promise<JsonObject | Problem>): Route => ({
    method: 'POST',
    paths: [`/hearsay/v1/mesh/${name}`],
    handle: async ({raw}) => {
      if (!isHere(raw)) return notHere();
      const bytes = await readBody(raw, {clock, bodyBytesMax, bodies});
      return isProblem(bytes) ? bytes : act(parseObject(new TextDecoder().decode(bytes)) ?? {});
    },
  });
  const limit = (): AbortSignal => AbortSignal.timeout(joinMsMax);
  const about = (report: MeshReport): JsonObject => ({...report});
  return [
    {
      method: 'GET',
      paths: ['/hearsay/v1/mesh'],
      handle: ({raw}) => (isHere(raw) ? about(mesh.report()) : notHere()),
    },
    post('invite', async ({role, lifeSeconds = inviteSecondsDefault}) => {
      if (typeof lifeSeconds !== 'number' || !(lifeSeconds > 0 && lifeSeconds <= inviteSecondsMax)) {
        return badRequest(`an invite lasts from 1 second to ${inviteSecondsMax / 86_400} days`, {param: 'lifeSeconds'});
      }
      return {...(await mesh.invite({role: role === 'keeper' ? 'keeper' : 'member', lifeMs: lifeSeconds * 1000}))};
    }),
    post('join', async body => withText(body, 'code', async code => about(await mesh.join(code, limit())))),
    post('lock', async () => about(await mesh.lock(limit()))),
    post('leave', async ({force}) => about(await mesh.leave({force: force === true}))),
    post('revoke', async body => withText(body, 'which', async which => ({revoked: await mesh.revoke(which)}))),
    post('trust', async body => withText(body, 'which', async which => about(await mesh.trust(which)))),
    post('forget', async body => withText(body, 'which', async which => about(await mesh.forget(which)))),
  ];
}

async function withText(
  body: JsonObject,
  field: string,
  act: (text: string) => Promise<JsonObject>,
): Promise<JsonObject | Problem> {
  const text = body[field];
  if (typeof text !== 'string' || text.trim() === '') return badRequest(`${field} is missing`, {param: field});
  return act(text.trim());
}

function isHere({socket}: IncomingMessage): boolean {
  return isLoopback((socket.remoteAddress ?? '').replace(/^::ffff:/u, ''));
}

function notHere(): Problem {
  const message = 'only commands on the machine of this node may do that';
  return badRequest(message, {status: 403, type: 'permission_error', code: 'not_local'});
}
