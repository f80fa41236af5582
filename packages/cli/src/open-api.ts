import {z} from 'zod';
import {engineOutcomesSchema, logOutcomesSchema} from './control-reports.ts';
import {enginesSchema, modelsSchema, nodesSchema, problemSchema, statusSchema} from './daemon-reports.ts';
import {requestsSchema, routeSchema, whySchema} from './journal-reports.ts';
import {createdKeySchema, keysSchema, revokedKeySchema} from './key-commands.ts';
import {inviteSchema, meshSchema, revokedSchema} from './mesh-reports.ts';
import {operatorSchema} from './operator-commands.ts';

/** One method of one path of the admin API. The answer is what the commands of this program parse it with. */
interface Operation {
  readonly method: 'get' | 'post';
  /** Below `/hearsay/v1/`. */
  readonly path: string;
  readonly about: string;
  readonly query?: Readonly<Record<string, z.ZodType>>;
  readonly body?: z.ZodType;
  /** Undefined: events, or this document. */
  readonly answer?: z.ZodType;
}

const text = z.string();
const count = z.int().nonnegative();
const target = z.object({model: text, node: text.optional()});
const which = z.object({which: text});
const texts = z.array(text).optional();
const targetQuery = {model: text, node: text.optional()};

const operations: readonly Operation[] = [
  {method: 'get', path: 'openapi.json', about: 'This document.'},
  {method: 'get', path: 'status', about: 'This node.', answer: statusSchema},
  {method: 'get', path: 'nodes', about: 'Every node that this one knows.', answer: nodesSchema},
  {method: 'get', path: 'models', about: 'Every model in the mesh.', answer: modelsSchema},
  {method: 'get', path: 'engines', about: 'Every engine in the mesh.', answer: enginesSchema},
  {
    method: 'get',
    path: 'events',
    about:
      'Server-sent events `node`, `engine` and `model`: first everything there is, then each change. Data: ' +
      '`{change: appeared | changed | gone, report}`, with the report as in the lists.',
  },
  {
    method: 'get',
    path: 'requests',
    about: 'Requests of this node, the newest first; after a change, those that have changed since.',
    query: {limit: count.optional(), after: count.optional()},
    answer: requestsSchema,
  },
  {method: 'get', path: 'why/{id}', about: 'Why a request ran where it ran.', answer: whySchema},
  {
    method: 'get',
    path: 'route',
    about: 'Where a request would run now.',
    query: {model: text, policy: text.optional(), needs: text.optional(), prompt_bytes: count.optional()},
    answer: routeSchema,
  },
  {method: 'get', path: 'show', about: 'The engines of a model.', query: targetQuery, answer: engineOutcomesSchema},
  {
    method: 'get',
    path: 'logs',
    about: 'What the engines of a model have written.',
    query: {...targetQuery, after: count.optional()},
    answer: logOutcomesSchema,
  },
  {
    method: 'post',
    path: 'load',
    about: 'Loads a model, on `copies` nodes, the best ones, and with `keep` until somebody stops it.',
    body: target.extend({
      context: count.optional(),
      slots: count.optional(),
      copies: count.optional(),
      keep: z.boolean().optional(),
    }),
    answer: engineOutcomesSchema,
  },
  {method: 'post', path: 'stop', about: 'Unloads a model.', body: target, answer: engineOutcomesSchema},
  {method: 'get', path: 'operator', about: 'What the owner has said about this node.', answer: operatorSchema},
  {
    method: 'post',
    path: 'operator/change',
    about: 'Drains or pauses this node, or lets it go on.',
    body: z.object({change: z.enum(['drain', 'undrain', 'pause', 'resume'])}),
    answer: operatorSchema,
  },
  {
    method: 'post',
    path: 'policies',
    about: 'Sets the policy of a model, workload or key; null takes it away.',
    body: z.object({subject: text, policy: text.nullable()}),
    answer: operatorSchema,
  },
  {method: 'get', path: 'keys', about: 'The keys of applications, without their secrets.', answer: keysSchema},
  {
    method: 'post',
    path: 'keys/create',
    about: 'Makes a key; only this answer has its secret.',
    body: z.looseObject({name: text, models: texts, workloads: texts, nodes: texts, policies: texts}),
    answer: createdKeySchema,
  },
  {method: 'post', path: 'keys/revoke', about: 'Ends a key.', body: z.object({name: text}), answer: revokedKeySchema},
  {method: 'get', path: 'mesh', about: 'Who is in the mesh; from this machine only.', answer: meshSchema},
  {
    method: 'post',
    path: 'mesh/invite',
    about: 'Makes an invite.',
    body: z.object({role: z.enum(['member', 'keeper']).optional(), lifeSeconds: count.optional()}),
    answer: inviteSchema,
  },
  {method: 'post', path: 'mesh/join', about: 'Joins by an invite.', body: z.object({code: text}), answer: meshSchema},
  {method: 'post', path: 'mesh/lock', about: 'Closes the mesh to others.', answer: meshSchema},
  {
    method: 'post',
    path: 'mesh/leave',
    about: 'Leaves the mesh; the only keeper only with `force`.',
    body: z.object({force: z.boolean().optional()}),
    answer: meshSchema,
  },
  {method: 'post', path: 'mesh/revoke', about: 'Ends a membership.', body: which, answer: revokedSchema},
  {method: 'post', path: 'mesh/trust', about: 'Trusts a network.', body: which, answer: meshSchema},
  {method: 'post', path: 'mesh/forget', about: 'Trusts a network no more.', body: which, answer: meshSchema},
];

/** The admin API as an OpenAPI document. */
export function openApi(version: string): Readonly<Record<string, unknown>> {
  const paths = new Map<string, Record<string, unknown>>();
  for (const operation of operations) {
    const path = `/hearsay/v1/${operation.path}`;
    paths.set(path, {...paths.get(path), [operation.method]: described(operation)});
  }
  return {
    openapi: '3.1.0',
    info: {title: 'hearsay', version, description: 'What people and tools ask a node and tell it.'},
    paths: Object.fromEntries(paths),
    components: {securitySchemes: {key: {type: 'http', scheme: 'bearer'}}},
    security: [{}, {key: []}],
  };
}

function described({path, about, query = {}, body, answer}: Operation): unknown {
  const inPath = path.includes('{id}') ? [{name: 'id', in: 'path', required: true, schema: {type: 'string'}}] : [];
  const inQuery = Object.entries(query).map(([name, schema]) => {
    return {name, in: 'query', required: !schema.safeParse(undefined).success, schema: jsonSchema(schema)};
  });
  return {
    summary: about,
    parameters: [...inPath, ...inQuery],
    ...(body ? {requestBody: {required: true, content: json(body)}} : {}),
    responses: {
      200: {description: 'The answer.', content: answer ? json(answer) : plainContent(path)},
      default: {description: "What is wrong, in OpenAI's form.", content: json(problemSchema)},
    },
  };
}

function plainContent(path: string): unknown {
  return path === 'events' ? {'text/event-stream': {}} : {'application/json': {}};
}

function json(schema: z.ZodType): unknown {
  return {'application/json': {schema: jsonSchema(schema)}};
}

/** As it goes over the wire: what this program makes of it afterwards is its own matter. Ids are texts. */
function jsonSchema(schema: z.ZodType): unknown {
  const {$schema: _, ...rest} = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override: ({zodSchema, jsonSchema: made}) => {
      if (zodSchema instanceof z.ZodCustom) made.type = 'string';
    },
  });
  return rest;
}
