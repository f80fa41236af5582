import type {Stream} from '@libp2p/interface';
import {controlBytesMax, decodeControl, decodeControlAnswer, encodeControl, encodeControlAnswer} from '@hearsay/core';
import {describeError} from '@hearsay/core';
import type {Clock, ControlAnswer, ControlRequest, MeshHandlers, NodeId} from '@hearsay/core';
import {converse} from './conversation.ts';

export const controlProtocol = '/hearsay/control/1';

/** A stop waits for running requests to end, within the owner's drain limit of some ten seconds. */
export const controlMsMax: number = 20_000;

/** Tells one wish and reads the answer. */
export async function askControl(
  stream: Stream,
  request: ControlRequest,
  clock: Clock,
  signal: AbortSignal,
): Promise<ControlAnswer> {
  let answer: ControlAnswer | undefined;
  const ask = async function* (next: () => Promise<Uint8Array>): AsyncGenerator<Uint8Array> {
    yield encodeControl(request);
    answer = decodeControlAnswer(await next());
  };
  await converse(stream, ask, {clock, frameBytesMax: controlBytesMax, msMax: controlMsMax, signal});
  return answer ?? {kind: 'refused', message: 'it did not answer'};
}

/** Answers one wish of an admitted peer. What goes wrong here is told as a refusal. */
export async function answerControl(
  stream: Stream,
  from: NodeId,
  control: MeshHandlers['control'],
  clock: Clock,
): Promise<void> {
  const reply = async function* (next: () => Promise<Uint8Array>): AsyncGenerator<Uint8Array> {
    yield encodeControlAnswer(await decide(await next(), from, control));
  };
  await converse(stream, reply, {clock, frameBytesMax: controlBytesMax, msMax: controlMsMax});
}

async function decide(frame: Uint8Array, from: NodeId, control: MeshHandlers['control']): Promise<ControlAnswer> {
  if (control === undefined) return {kind: 'refused', message: 'this node takes no wishes from others'};
  try {
    return await control(decodeControl(frame), from);
  } catch (error) {
    return {kind: 'refused', message: describeError(error)};
  }
}
