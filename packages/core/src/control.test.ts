import test from 'ava';
import {digest} from '../../../test/support/builders.ts';
import {controlBytesMax, decodeControl, decodeControlAnswer, encodeControl, encodeControlAnswer} from './control.ts';
import {logLineLengthMax, logPageLinesMax} from './control.ts';
import type {ControlAnswer, ControlRequest, EngineDetails} from './control.ts';
import {Fault} from './fault.ts';

const details: EngineDetails = {
  state: 'starting',
  slots: 4,
  busy: 1,
  queued: 2,
  context: 8192,
  loadedShare: 0.25,
  remainingMs: 1500,
  readySeconds: undefined,
  untilSeconds: 300,
  failure: 'llama-server exited with code 1',
};

const requests: readonly ControlRequest[] = [
  {kind: 'load', digest: digest('a'), context: 4096, slots: undefined, keep: true},
  {kind: 'stop', digest: digest('a')},
  {kind: 'show', digest: digest('b')},
  {kind: 'logs', digest: digest('b'), after: 7},
];

const answers: readonly ControlAnswer[] = [
  {kind: 'engine', engine: details},
  {kind: 'engine', engine: undefined},
  {kind: 'logs', page: {lines: ['one', 'two'], first: 5, next: 7}},
  {kind: 'refused', message: 'no'},
];

for (const request of requests) {
  test(`a wish to ${request.kind} comes back from its bytes as it was`, t =>
    t.deepEqual(decodeControl(encodeControl(request)), request));
}

for (const [index, answer] of answers.entries()) {
  test(`answer ${index} (${answer.kind}) comes back from its bytes as it was`, t =>
    t.deepEqual(decodeControlAnswer(encodeControlAnswer(answer)), answer));
}

test('S18: any bytes give a fault and nothing else', t => {
  for (const decode of [decodeControl, decodeControlAnswer]) {
    for (const bytes of [[], [0xff], [0xa0], [0x9f], Array.from({length: controlBytesMax + 1}, () => 0)]) {
      t.throws(() => decode(Uint8Array.from(bytes)), {instanceOf: Fault});
    }
  }
});

test('a full page of plain lines and a long reason fit into one message', t => {
  const lines = Array.from({length: logPageLinesMax}, () => 'x'.repeat(logLineLengthMax));
  t.true(encodeControlAnswer({kind: 'logs', page: {lines, first: 0, next: 100}}).length < controlBytesMax);
  const failure = 'y'.repeat(100_000);
  const answer = decodeControlAnswer(encodeControlAnswer({kind: 'engine', engine: {...details, failure}}));
  t.true(answer.kind === 'engine' && (answer.engine?.failure?.length ?? 0) > 10_000);
});
