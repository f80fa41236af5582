import type {IncomingMessage} from 'node:http';
import type {FastifyRequest} from 'fastify';
import {describeError, Fault, nameLengthMax} from '@hearsay/core';
import type {Cluster, ControlAnswer, ControlCommand, ControlOutcome} from '@hearsay/core';
import {parseObject} from './json.ts';
import {noObject} from './no-object.ts';
import type {JsonObject} from './json.ts';
import {badRequest, isProblem} from './problem.ts';
import type {Problem} from './problem.ts';
import {readBody} from './read-body.ts';
import type {BodyRules} from './read-body.ts';

/** The part of the admin API that does something with engines, here or on other nodes. */

interface ControlService extends BodyRules {
  readonly cluster: Cluster;
}

interface ControlRoute {
  readonly method: 'GET' | 'POST';
  readonly paths: readonly string[];
  readonly handle: (request: FastifyRequest) => Promise<JsonObject | Problem>;
}

/** Largest context and number of slots that anybody means. */
const contextMax = 10_000_000;
const slotsMax = 256;
const copiesMax = 1000;

type Wish = {readonly model: string; readonly node: string | undefined};

export function controlRoutes(service: ControlService): readonly ControlRoute[] {
  async function answer(command: ControlCommand | Problem, {raw}: FastifyRequest): Promise<JsonObject | Problem> {
    if (isProblem(command)) return command;
    const gone = new AbortController();
    const abort = (): void => gone.abort(new Fault('CANCELLED', 'the client went away'));
    raw.socket.once('close', abort);
    try {
      const outcomes = await service.cluster.control(command, gone.signal);
      return {nodes: outcomes.map(described), ...(command.kind === 'stop' ? {stopped: outcomes.some(hasStopped)} : {})};
    } finally {
      raw.socket.removeListener('close', abort);
    }
  }

  return [
    {
      method: 'POST',
      paths: ['/hearsay/v1/load'],
      handle: async request => answer(await readWish(request.raw, service, loadCommand), request),
    },
    {
      method: 'POST',
      paths: ['/hearsay/v1/stop'],
      handle: async request => answer(await readWish(request.raw, service, stopCommand), request),
    },
    {
      method: 'GET',
      paths: ['/hearsay/v1/show'],
      handle: async request => answer(showCommand(fieldsOf(request)), request),
    },
    {
      method: 'GET',
      paths: ['/hearsay/v1/logs'],
      handle: async request => answer(logsCommand(fieldsOf(request)), request),
    },
  ];
}

async function readWish(
  raw: IncomingMessage,
  rules: BodyRules,
  parse: (fields: JsonObject) => ControlCommand | Problem,
): Promise<ControlCommand | Problem> {
  const bytes = await readBody(raw, rules);
  if (isProblem(bytes)) return bytes;
  const fields = parseObject(new TextDecoder().decode(bytes));
  return fields === undefined ? noObject(bytes) : parse(fields);
}

function fieldsOf({query}: FastifyRequest): JsonObject {
  return typeof query === 'object' && query !== null ? {...query} : {};
}

function loadCommand(fields: JsonObject): ControlCommand | Problem {
  const wish = readTarget(fields);
  if (isProblem(wish)) return wish;
  const context = wholeNumber(fields, 'context', contextMax);
  const slots = wholeNumber(fields, 'slots', slotsMax);
  if (isProblem(context)) return context;
  if (isProblem(slots)) return slots;
  const copies = wholeNumber(fields, 'copies', copiesMax);
  if (isProblem(copies)) return copies;
  return {...wish, kind: 'load', context, slots, keep: fields['keep'] === true, copies};
}

function stopCommand(fields: JsonObject): ControlCommand | Problem {
  const wish = readTarget(fields);
  return isProblem(wish) ? wish : {...wish, kind: 'stop'};
}

function showCommand(fields: JsonObject): ControlCommand | Problem {
  const wish = readTarget(fields);
  return isProblem(wish) ? wish : {...wish, kind: 'show'};
}

function logsCommand(fields: JsonObject): ControlCommand | Problem {
  const wish = readTarget(fields);
  if (isProblem(wish)) return wish;
  const after = Number(fields['after'] ?? 0);
  if (!Number.isSafeInteger(after) || after < 0) return badRequest('after must be a whole number', {param: 'after'});
  return {...wish, kind: 'logs', after};
}

function readTarget({model, node}: JsonObject): Wish | Problem {
  if (typeof model !== 'string' || model === '') return badRequest('model is missing', {param: 'model'});
  if (model.length > nameLengthMax) return badRequest('model is too long', {param: 'model'});
  if (node === undefined || node === null || node === '') return {model, node: undefined};
  if (typeof node !== 'string' || node.length > nameLengthMax)
    return badRequest('node must be a name', {param: 'node'});
  return {model, node};
}

function wholeNumber(fields: JsonObject, name: string, max: number): number | undefined | Problem {
  const value = fields[name] ?? undefined;
  if (value === undefined) return undefined;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= max) return value;
  return badRequest(`${name} must be a whole number from 1 to ${max}, not ${describeError(value)}`, {param: name});
}

function described({node, nodeName, local, digest, answer}: ControlOutcome): JsonObject {
  return {id: node, name: nodeName, local, digest, ...answered(answer)};
}

function answered(answer: ControlAnswer): JsonObject {
  switch (answer.kind) {
    case 'engine':
      return answer.engine === undefined ? {} : {engine: answer.engine};
    case 'logs':
      return {...answer.page};
    case 'refused':
      return {refused: answer.message};
  }
}

function hasStopped({answer}: ControlOutcome): boolean {
  return answer.kind === 'engine' && answer.engine !== undefined;
}
