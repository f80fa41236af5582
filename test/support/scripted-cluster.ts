import {idleOperator, toDigest, toNodeId} from '@hearsay/core';
import type {Answer, ClientRequest, Cluster, EngineReport, ModelReport, NodeReport, StatusReport} from '@hearsay/core';
import type {ControlAnswer, EngineDetails} from '@hearsay/core';
import {node} from './builders.ts';

/**
 * A cluster whose answers are given by the test: a twin of the port, for everything that is the gateway's own matter.
 */
export interface ScriptedCluster extends Cluster {
  /** Every request that was dispatched, with its signal. */
  readonly dispatched: {readonly request: ClientRequest; readonly signal: AbortSignal}[];
  /** Models that were asked to stop. */
  readonly stopped: string[];
}

export type Script = (request: ClientRequest, signal: AbortSignal) => Answer | Promise<Answer>;

export function scriptedCluster(script: Script, models: readonly ModelReport[] = [modelReport()]): ScriptedCluster {
  const dispatched: {request: ClientRequest; signal: AbortSignal}[] = [];
  const stopped: string[] = [];
  const answer: ControlAnswer = {kind: 'engine', engine: engineDetails};
  return {
    dispatched,
    stopped,
    dispatch: async (request, signal) => {
      dispatched.push({request, signal});
      return script(request, signal);
    },
    models: () => models,
    engines: (): readonly EngineReport[] => [],
    nodes: (): readonly NodeReport[] => [],
    inFlight: () => 0,
    retire: async () => undefined,
    waiting: () => undefined,
    stop: async model => {
      stopped.push(model);
      return models.some(({name}) => name === model);
    },
    control: async ({kind, model}) => {
      if (kind === 'stop') stopped.push(model);
      const known = models.filter(({name}) => name === model);
      return known.map(({digest}) => ({node: toNodeId(nodeText), nodeName: 'spark', local: true, digest, answer}));
    },
    operator: () => idleOperator,
    operate: async () => idleOperator,
    requests: () => [],
    why: () => undefined,
    route: () => {
      throw new Error('not in the script');
    },
    [Symbol.asyncDispose]: async () => {},
  };
}

/** A body that tells how far it has been read and whether it has been ended. */
export interface ScriptedBody extends AsyncIterable<Uint8Array> {
  readonly pulledBytes: () => number;
  readonly isEnded: () => boolean;
}

export function scriptedBody(chunks: AsyncIterable<string> | Iterable<string>): ScriptedBody {
  let pulledBytes = 0;
  let ended = false;
  async function* body(): AsyncGenerator<Uint8Array> {
    for await (const chunk of chunks) {
      const bytes = new TextEncoder().encode(chunk);
      pulledBytes += bytes.length;
      yield bytes;
    }
  }
  const source = body();
  const iterator: AsyncIterator<Uint8Array> = {
    next: () => source.next(),
    return: async () => {
      ended = true;
      return source.return(undefined);
    },
  };
  return {pulledBytes: () => pulledBytes, isEnded: () => ended, [Symbol.asyncIterator]: () => iterator};
}

export function scriptedAnswer(body: AsyncIterable<Uint8Array>, changes: Partial<Answer> = {}): Answer {
  return {
    run: {
      node: toNodeId(nodeText),
      nodeName: 'spark',
      digest: toDigest(digestText),
      model: 'tiny',
      attempts: 1,
      policy: 'auto',
      reason: 'loaded here',
    },
    status: 200,
    contentType: 'text/event-stream',
    body,
    ...changes,
  };
}

/** llama-server's stream for a chat answer of these pieces, with `data: [DONE]`. */
export function chatEvents(pieces: readonly string[]): readonly string[] {
  const head = {id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'tiny', system_fingerprint: 'b1'};
  const chunks = [
    {...head, choices: [{index: 0, delta: {role: 'assistant', content: null}, finish_reason: null}]},
    ...pieces.map(content => ({...head, choices: [{index: 0, delta: {content}, finish_reason: null}]})),
    {...head, choices: [{index: 0, delta: {}, finish_reason: 'stop'}], timings: {predicted_n: pieces.length}},
    {
      ...head,
      choices: [],
      usage: {prompt_tokens: 3, completion_tokens: pieces.length, total_tokens: 3 + pieces.length},
    },
  ];
  return [...chunks.map(event), 'data: [DONE]\n\n'];
}

export function event(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

/** An engine of the model of `modelReport` on a node that is named by a letter. */
export function engineReport(letter: string, changes: Partial<EngineReport> = {}): EngineReport {
  return {
    name: 'tiny',
    digest: modelReport().digest,
    sizeBytes: 1,
    processor: 'llama-server',
    context: 4096,
    state: 'ready',
    startedSecondsAgo: 1,
    node: 'local',
    nodeId: node(letter),
    nodeName: letter,
    untilSeconds: undefined,
    slots: 4,
    busy: 0,
    queued: 0,
    failure: undefined,
    ...changes,
  };
}

export function modelReport(changes: Partial<ModelReport> = {}): ModelReport {
  return {
    name: 'tiny',
    names: ['tiny', 'tiny:latest'],
    digest: toDigest(digestText),
    sizeBytes: 788_992,
    architecture: 'llama',
    quant: 'F16',
    parameters: 393_856,
    contextMax: 8192,
    capabilities: ['chat', 'completion'],
    status: 'loaded',
    nodes: [{id: toNodeId(nodeText), name: 'spark', local: true}],
    conflict: false,
    demo: false,
    problem: undefined,
    hashed: undefined,
    ...changes,
  };
}

export function statusReport(): StatusReport {
  return {
    id: toNodeId(nodeText),
    name: 'spark',
    version: '0.1.0',
    mesh: 'home',
    meshAddresses: ['127.0.0.1:4328'],
    gateway: 'http://127.0.0.1:4327',
    engine: 'llama-server',
    processId: 1,
    uptimeSeconds: 5,
    peers: 0,
    models: 1,
    loaded: 1,
    inFlight: 0,
    state: 'serving',
    policies: 0,
    dataFolder: '/data',
  };
}

const engineDetails: EngineDetails = {
  state: 'ready',
  slots: 4,
  busy: 0,
  queued: 0,
  context: 8192,
  loadedShare: undefined,
  remainingMs: undefined,
  readySeconds: 1,
  untilSeconds: undefined,
  failure: undefined,
};

const nodeText = '12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp';
const digestText = `sha256:${'ab'.repeat(32)}`;
