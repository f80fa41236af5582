import type {Capability, Endpoint} from '@hearsay/core';
import {openAiErrors} from './error-form.ts';
import type {Operation} from './operation.ts';
import {PlainReply} from './plain-reply.ts';
import {badRequest, isProblem} from './problem.ts';
import {clientRequest, modelIn, readJson} from './read-request.ts';

interface PlainRequest {
  readonly needs: readonly Capability[];
  /** Fields without which the request means nothing; of each list one is enough. */
  readonly fields: readonly (string | readonly string[])[];
  /** Nor do they mean anything as empty lists: llama-server calls that its own fault. */
  readonly isFilled?: boolean;
}

/** A request that has one JSON object for an answer, which passes as it is. */
export function plain(endpoint: Endpoint, {needs, fields, isFilled = false}: PlainRequest): Operation {
  return {
    errors: openAiErrors,
    read(bytes, frame) {
      const read = readJson(bytes);
      if (read.kind === 'problem') return read;
      const {body} = read;
      const missing = fields
        .map(names => [names].flat())
        .find(names => !names.some(name => isGiven(body[name], isFilled)));
      if (missing !== undefined) {
        const what = isFilled ? 'is missing or empty' : 'is missing';
        return badRequest(`${missing.join(' or ')} ${what}`, {param: missing[0] ?? ''});
      }
      const request = clientRequest({model: modelIn(body), endpoint, needs, body}, frame);
      if (isProblem(request)) return request;
      return {
        kind: 'call',
        request,
        answerType: 'application/json',
        reply: response => new PlainReply(response, openAiErrors),
      };
    },
  };
}

function isGiven(value: unknown, isFilled: boolean): boolean {
  if (value === undefined || value === null) return false;
  return !isFilled || !Array.isArray(value) || value.length > 0;
}
