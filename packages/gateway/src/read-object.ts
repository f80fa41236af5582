import type {IncomingMessage} from 'node:http';
import {parseObject} from './json.ts';
import type {JsonObject} from './json.ts';
import {noObject} from './no-object.ts';
import {badRequest, isProblem} from './problem.ts';
import type {Problem} from './problem.ts';
import {readBody} from './read-body.ts';
import type {BodyRules} from './read-body.ts';

/** The JSON object that a request to the admin API carries. */
export async function readObject(raw: IncomingMessage, rules: BodyRules): Promise<JsonObject | Problem> {
  const bytes = await readBody(raw, rules);
  if (isProblem(bytes)) return bytes;
  const body = parseObject(new TextDecoder().decode(bytes));
  if (body === undefined) return noObject(bytes);
  return isProblem(body) ? badRequest('kind is not known here', {param: 'kind'}) : body;
}
