import {automatic} from '@hearsay/core';
import type {Arrival, DecisionFacts, Outcome, RequestEvent} from '@hearsay/core';
import {asked, beat, digest, engineBeat, model, node} from './builders.ts';

export function arrived(name: string, changes: Partial<Arrival> = {}): Arrival {
  return {
    kind: 'arrived',
    role: 'entry',
    model: name,
    endpoint: '/v1/chat/completions',
    policy: 'auto',
    bodyBytes: 100,
    caller: undefined,
    from: undefined,
    ...changes,
  };
}

export function ended(outcome: Outcome): RequestEvent {
  return {kind: 'ended', outcome, code: undefined, message: undefined, usage: undefined};
}

const direct = {roundTripMs: 1, relayed: false, failures: 0, ownOffers: 0};

/** Three nodes: this one stores the model, B has it loaded, C is in quarantine. */
export function decisionFacts(request: string): DecisionFacts {
  const known = (letter: string, loaded: boolean) =>
    [
      node(letter),
      {
        beat: beat(letter, {engines: loaded ? [engineBeat('a')] : []}),
        signed: {node: node(letter), payload: new Uint8Array(300), signature: new Uint8Array(64)},
        madeAtMs: 1000,
        inventory: {digest: '0011223344556677', models: [model('m', 'a'), model('other', 'b')]},
      },
    ] as const;
  return {
    asked: asked({request}),
    question: {
      digests: [digest('a')],
      needs: ['chat'],
      policy: automatic,
      tried: new Set(),
      busy: new Set(),
      hits: new Map(),
      nowMs: 2000,
    },
    self: {beat: beat('A'), models: [model('m', 'a'), model('third', 'c')]},
    nodes: new Map([known('B', true), known('C', true)]),
    reach: new Map([
      [node('B'), {...direct, quarantinedUntilMs: -Infinity}],
      [node('C'), {...direct, quarantinedUntilMs: 9000}],
    ]),
  };
}
