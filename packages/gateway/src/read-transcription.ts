import {contentTypeLengthMax, Fault, mediaTextBytes} from '@hearsay/core';
import {EitherReply} from './either-reply.ts';
import {openAiErrors} from './error-form.ts';
import {formField, withFormField} from './form-field.ts';
import {parseObject} from './json.ts';
import type {JsonObject} from './json.ts';
import {ObjectReply} from './object-reply.ts';
import type {Assembly} from './object-reply.ts';
import type {Operation} from './operation.ts';
import {PlainReply} from './plain-reply.ts';
import {badRequest, isProblem} from './problem.ts';
import {longName, requestOf} from './read-request.ts';
import {StreamReply} from './stream-reply.ts';
import {problemFromErrorEvent} from './upstream-problem.ts';

/**
 * OpenAI's transcription of a recording. The form goes on byte for byte (C66), but that a whole answer is streamed to
 * us, so that a cancel frees the slot. Only llama-server's own form of it: other servers have more, which pass as they
 * are.
 */
export const transcription: Operation = {
  errors: openAiErrors,
  read(body, frame) {
    const {contentType = ''} = frame;
    if (!/^multipart\/form-data\s*;/iu.test(contentType) || contentType.length > contentTypeLengthMax) {
      return badRequest('the body is not multipart/form-data with a boundary', {param: 'file'});
    }
    const field = (name: string): string => formField(body, contentType, name) ?? '';
    const model = field('model');
    const tooLong = longName(model);
    if (tooLong) return tooLong;
    const wantsStream = field('stream') === 'true'; // as llama-server reads it
    const isObject = ['', 'json'].includes(field('response_format'));
    const sent = isObject && !wantsStream ? withFormField(body, contentType, 'stream', 'true') : body;
    const mediaBytes = Math.max(0, sent.length - mediaTextBytes);
    const hints = {maxTokens: undefined, session: undefined, conversation: [], mediaBytes};
    const request = requestOf(
      {model, endpoint: '/v1/audio/transcriptions', needs: ['audio'], body: sent, contentType, hints},
      frame,
    );
    if (isProblem(request)) return request;
    return {
      kind: 'call',
      request,
      answerType: 'any',
      reply: (response, clock, patience) =>
        new EitherReply(
          response,
          wantsStream ? new StreamReply(response, clock, patience) : new ObjectReply(response, transcriptionAssembly()),
          () => new PlainReply(response, openAiErrors),
        ),
    };
  },
};

/** The last event says it all, as the answer would that is not streamed. */
function transcriptionAssembly(): Assembly {
  let result: JsonObject | undefined;
  return {
    errors: openAiErrors,
    take(event) {
      const problem = problemFromErrorEvent(event);
      if (problem || event.data === '[DONE]') return problem;
      const told = parseObject(event.data);
      if (told === undefined) throw new Fault('ENGINE_FAILED', 'the answer has an event that is not JSON');
      if (told['type'] === 'transcript.text.done') result = told;
      return undefined;
    },
    result: () => result,
  };
}
