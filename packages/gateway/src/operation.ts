import type {ServerResponse} from 'node:http';
import type {Caller, ClientRequest, Clock, RequestId} from '@hearsay/core';
import type {ErrorForm} from './error-form.ts';
import type {JsonObject} from './json.ts';
import type {Problem} from './problem.ts';
import type {Reply} from './reply.ts';
import type {Patience} from './stream-output.ts';

/** One thing that clients may ask an engine for, in one dialect: how it is read, how it is answered. */
export interface Operation<Read extends Call | Immediate | Problem = Call | Problem> {
  /** How errors look to clients of this dialect. */
  readonly errors: ErrorForm;
  /** Pure: checks what the gateway and the choice of a node need to know; the rest is llama-server's matter. */
  readonly read: (bytes: Uint8Array, frame: RequestFrame) => Read;
}

/** What came with the body of a request. */
export interface RequestFrame {
  readonly id: RequestId;
  /** `x-hearsay-policy`, as sent. */
  readonly policy: string | undefined;
  readonly traceparent: string | undefined;
  readonly contentType: string | undefined;
  /** The application, when it gave a key. */
  readonly caller?: Caller | undefined;
  /** Any header, for what names the conversation; absent where there is none. */
  readonly header?: (name: string) => string | undefined;
  /** Of the URL. */
  readonly query?: URLSearchParams;
}

/** What a reply needs to know besides the answer. */
export interface Situation extends Patience {
  /** How many tokens the engine that answers can hold, read and written together; undefined: nobody has told. */
  readonly contextOfRun: () => number | undefined;
}

/** What the client asked for, ready to be dispatched. */
export interface Call {
  readonly kind: 'call';
  readonly request: ClientRequest;
  /** What the engine must answer with; anything else is a failure of it. */
  readonly answerType: 'text/event-stream' | 'application/json' | 'any';
  /** Opens the client's side of the answer; the caller disposes it. */
  readonly reply: (response: ServerResponse, clock: Clock, situation: Situation) => Reply;
  /** Another call, when the engine refused this one for something that can be mended; at most a few times. */
  readonly mend?: (problem: Problem) => Call | undefined;
}

/** A request that no engine needs to run. */
export interface Immediate {
  readonly kind: 'immediate';
  readonly answer: () => Promise<JsonObject>;
}
