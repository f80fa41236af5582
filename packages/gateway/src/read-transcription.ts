import {contentTypeLengthMax} from '@hearsay/core';
import {openAiErrors} from './error-form.ts';
import {formField} from './form-field.ts';
import type {Operation} from './operation.ts';
import {PlainReply} from './plain-reply.ts';
import {badRequest, isProblem} from './problem.ts';
import {longName, requestOf} from './read-request.ts';

/** OpenAI's transcription of a recording. The form goes on byte for byte; only the name of the model is read (C66). */
export const transcription: Operation = {
  errors: openAiErrors,
  read(body, frame) {
    const {contentType = ''} = frame;
    if (!/^multipart\/form-data\s*;/iu.test(contentType) || contentType.length > contentTypeLengthMax) {
      return badRequest('the body is not multipart/form-data with a boundary', {param: 'file'});
    }
    const model = formField(body, contentType, 'model') ?? '';
    const tooLong = longName(model);
    if (tooLong) return tooLong;
    const request = requestOf(
      {model, endpoint: '/v1/audio/transcriptions', needs: ['audio'], body, contentType},
      frame,
    );
    if (isProblem(request)) return request;
    return {kind: 'call', request, answerType: 'any', reply: response => new PlainReply(response, openAiErrors)};
  },
};
