import {automatic, newRequestId, toDigest, toNodeId} from '@hearsay/core';
import type {Asked, Beat, Candidate, ClientRequest, Digest, EngineBeat, LearnedFacts, LoadedFacts} from '@hearsay/core';
import type {Link, ModelFacts, NodeId} from '@hearsay/core';

/** A digest that is easy to read in a failure: the letter, 64 times. */
export function digest(letter: string): Digest {
  return toDigest(`sha256:${letter.repeat(64)}`);
}

/** A node id made of one letter (not one that base58 lacks). */
export function node(letter: string): NodeId {
  return toNodeId(`12D3Koo${letter.repeat(45)}`);
}

export function model(name: string, letter: string, changes: Partial<ModelFacts> = {}): ModelFacts {
  return {
    digest: digest(letter),
    names: [name],
    sizeBytes: 1e9,
    needBytes: 1.2e9,
    architecture: 'llama',
    quant: 'Q8_0',
    parameters: 1e9,
    contextMax: 8192,
    capabilities: ['chat', 'completion'],
    demo: false,
    ...changes,
  };
}

export function engineBeat(letter: string, changes: Partial<EngineBeat> = {}): EngineBeat {
  return {
    digest: digest(letter),
    readiness: 'ready',
    slots: 4,
    busy: 0,
    queued: 0,
    waitMs: 0,
    context: 8192,
    ageSeconds: 1,
    untilSeconds: 300,
    sizeBytes: 1e9,
    ...changes,
  };
}

export function beat(letter: string, changes: Partial<Beat> = {}): Beat {
  return {
    kind: 'beat',
    node: node(letter),
    name: letter,
    version: '0.1.0',
    boot: 1,
    sequence: 1,
    ttlMs: 7000,
    loadSeq: 0,
    inventory: '0011223344556677',
    engines: [],
    memory: {kind: 'ram', totalBytes: 16e9, freeBytes: 8e9},
    flags: {draining: false, paused: false},
    ...changes,
  };
}

/** To a peer that has been admitted. */
export function directLink(peer: NodeId): Link {
  return {
    node: peer,
    address: '10.0.0.2:4328',
    path: 'direct',
    roundTripMs: 1,
    admitted: true,
    refusal: undefined,
  };
}

export function candidate(letter: string, changes: Partial<Candidate> = {}): Candidate {
  return {
    node: node(letter),
    name: letter,
    self: false,
    exclusion: undefined,
    digest: digest('a'),
    state: 'stored',
    preferred: false,
    ageMs: 0,
    slots: 4,
    busy: 0,
    freeSlots: 0,
    queued: 0,
    waitMs: 0,
    running: 0,
    ownOffers: 0,
    sizeBytes: 1e9,
    contextTokens: undefined,
    roomBytes: 8e9,
    hasRoom: true,
    evictSeconds: 0,
    roundTripMs: 1,
    relayed: false,
    failures: 0,
    learned: undefined,
    likely: undefined,
    hitBytes: 0,
    ...changes,
  };
}

/** What a node may have measured of a model. */
export function learned(changes: Partial<LearnedFacts> = {}): LearnedFacts {
  return {
    prefillTps: 1000,
    decodeTps: 50,
    loadMs: 4000,
    holdMs: 5000,
    outputTokens: 200,
    bytesPerToken: 4,
    ...changes,
  };
}

export function asked(changes: Partial<Asked> = {}): Asked {
  return {request: 'request', spread: 'auto', promptBytes: 4000, maxTokens: undefined, ...changes};
}

/** What a client asks for; the number makes an id of its own. */
export function clientRequest(changes: Partial<ClientRequest> = {}, number: number = 0): ClientRequest {
  return {
    id: newRequestId({next: () => 0, bytes: length => new Uint8Array(length).fill(number)}),
    model: 'm',
    endpoint: '/v1/chat/completions',
    needs: ['chat'],
    policy: automatic,
    body: new Uint8Array(3),
    traceparent: undefined,
    ...changes,
  };
}

/** An engine that says nothing of its model. */
export const nothingTold: LoadedFacts = {
  context: undefined,
  sees: undefined,
  hears: undefined,
  chatTemplate: undefined,
  isTemplateChosen: false,
  callsTools: undefined,
};
