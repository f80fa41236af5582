import {readFileSync} from 'node:fs';
import {decodeControl, decodeControlAnswer, decodeOffer, encodeControl, encodeControlAnswer} from '@hearsay/core';
import {encodeOffer} from '@hearsay/core';
import type {ControlAnswer, ControlRequest} from '@hearsay/core';
import test from 'ava';
import {digest} from './support/builders.ts';
import {workRequest} from './support/mesh-trial.ts';

const document = readFileSync(new URL('../docs/protocol.md', import.meta.url), 'utf8');

/** The bytes printed under that name in docs/protocol.md. */
function golden(name: string): Uint8Array {
  const hex = new RegExp(`\`\`\`golden ${name}\\n([0-9a-f\\n]+)\`\`\``, 'u').exec(document)?.[1];
  if (hex === undefined) throw new Error(`docs/protocol.md has no golden bytes for ${name}`);
  return Uint8Array.from(Buffer.from(hex.replaceAll('\n', ''), 'hex'));
}

const wishes: readonly (readonly [string, ControlRequest])[] = [
  ['control load', {kind: 'load', digest: digest('a'), context: 4096, slots: 2, keep: true}],
  ['control logs', {kind: 'logs', digest: digest('a'), after: 7}],
];

const answers: readonly (readonly [string, ControlAnswer])[] = [
  [
    'control answer engine',
    {
      kind: 'engine',
      engine: {
        state: 'starting',
        slots: 2,
        busy: 0,
        queued: 1,
        context: 4096,
        loadedShare: 0.25,
        remainingMs: 1500,
        readySeconds: undefined,
        untilSeconds: undefined,
        failure: undefined,
      },
    },
  ],
  ['control answer logs', {kind: 'logs', page: {lines: ['one', 'two'], first: 7, next: 9}}],
];

test('the golden bytes of wishes and answers are what the protocol document describes, and still what is written', t => {
  for (const [name, wish] of wishes) {
    t.deepEqual(decodeControl(golden(name)), wish, name);
    t.deepEqual(Uint8Array.from(encodeControl(wish)), golden(name), name);
  }
  for (const [name, answer] of answers) {
    t.deepEqual(decodeControlAnswer(golden(name)), answer, name);
    t.deepEqual(Uint8Array.from(encodeControlAnswer(answer)), golden(name), name);
  }
});

test('the keep-alive of an offer crosses as it is, for ever included, and an offer without one has no word for it', t => {
  for (const keepAliveMs of [0, 90_000, Infinity]) {
    const request = workRequest({keepAliveMs});
    t.deepEqual(decodeOffer(encodeOffer(request)), request);
  }
  t.false('keepAliveMs' in decodeOffer(encodeOffer(workRequest())));
});
