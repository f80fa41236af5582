import {contentTypeLengthMax, Fault, formFields, isForm, mediaTextBytes, withFormFields} from '@hearsay/core';
import {EitherReply} from './either-reply.ts';
import {openAiErrors} from './error-form.ts';
import {EventSplitter} from './event-stream.ts';
import type {JsonObject} from './json.ts';
import {ObjectReply} from './object-reply.ts';
import type {Assembly} from './object-reply.ts';
import type {Call, Operation} from './operation.ts';
import {PlainReply} from './plain-reply.ts';
import {badRequest, isProblem} from './problem.ts';
import {longName, requestOf} from './read-request.ts';
import {StreamReply} from './stream-reply.ts';
import type {EndWatch} from './stream-reply.ts';
import {TranscriptReader} from './transcript-reader.ts';
import {problemFromErrorEvent} from './upstream-problem.ts';

/**
 * OpenAI's transcription of a recording. The form goes on byte for byte (C66), but that a whole answer is streamed to
 * us, so that a cancel frees the slot. A bare text is made here, because llama-server knows only JSON; what else it
 * does not know passes as it is, for servers that do.
 */
export const transcription: Operation = {
  errors: openAiErrors,
  read(body, frame) {
    const {contentType = ''} = frame;
    if (!isForm(contentType) || contentType.length > contentTypeLengthMax) {
      return badRequest('the body is not multipart/form-data with a boundary', {param: 'file'});
    }
    const fields = formFields(body, contentType, ['model', 'response_format', 'stream']);
    const model = fields.get('model') ?? '';
    const tooLong = longName(model);
    if (tooLong) return tooLong;
    const form = fields.get('response_format') ?? '';
    const wish: Wish = {
      stream: fields.get('stream') === 'true', // as llama-server reads it
      form: form === 'text' ? 'text' : form === '' || form === 'json' ? 'json' : 'other',
    };
    const sent = formFor(wish, body, contentType);
    const mediaBytes = Math.max(0, sent.length - mediaTextBytes);
    const hints = {maxTokens: undefined, session: undefined, conversation: [], mediaBytes};
    const request = requestOf(
      {model, endpoint: '/v1/audio/transcriptions', needs: ['audio'], body: sent, contentType, hints},
      frame,
    );
    return isProblem(request) ? request : {kind: 'call', request, answerType: 'any', reply: replyFor(wish)};
  },
};

interface Wish {
  readonly stream: boolean;
  readonly form: 'json' | 'text' | 'other';
}

function formFor({stream, form}: Wish, body: Uint8Array, contentType: string): Uint8Array {
  const fields = {
    ...(form === 'text' ? {response_format: 'json'} : {}),
    ...(stream || form === 'other' ? {} : {stream: 'true'}),
  };
  return Object.keys(fields).length === 0 ? body : withFormFields(body, contentType, fields);
}

function replyFor({stream, form}: Wish): Call['reply'] {
  const isText = form === 'text';
  return (response, clock, patience) =>
    new EitherReply(
      response,
      stream
        ? new StreamReply(response, clock, patience, endOfTranscript())
        : new ObjectReply(response, transcriptionAssembly(isText ? bareText : told => told)),
      () => new PlainReply(response, openAiErrors, isText ? bareText : undefined),
    );
}

function bareText({text}: JsonObject): string {
  return typeof text === 'string' ? text : '';
}

function transcriptionAssembly(shown: (told: JsonObject) => JsonObject | string): Assembly<JsonObject | string> {
  const reader = new TranscriptReader();
  const show = (told: JsonObject | undefined): JsonObject | string | undefined => told && shown(told);
  return {
    errors: openAiErrors,
    take(event) {
      const problem = problemFromErrorEvent(event);
      if (problem) return problem;
      if (!reader.take(event)) throw new Fault('ENGINE_FAILED', 'the answer has an event that is not JSON');
      return undefined;
    },
    result: () => show(reader.whole()),
    resultAtEnd: () => show(reader.ended()),
  };
}

/** Not every server writes `[DONE]` behind the last event. */
function endOfTranscript(): EndWatch {
  const splitter = new EventSplitter();
  const reader = new TranscriptReader();
  return {
    take(chunk) {
      for (const event of splitter.push(chunk)) reader.take(event);
    },
    isWhole: () => reader.whole() !== undefined,
    isEnd: () => reader.ended() !== undefined,
  };
}
