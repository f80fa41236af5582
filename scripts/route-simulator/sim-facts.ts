import {toDigest, toNodeId} from '@hearsay/core';
import type {Digest, HardwareFacts, LearnedFacts, ModelFacts, NodeId} from '@hearsay/core';
import {decodeSpeed, loadSeconds, modelKinds, modelOf, prefillSpeed} from './hardware.ts';
import type {NodeKind} from './hardware.ts';
import {logNormal} from './timeline.ts';
import type {Chance} from './timeline.ts';

const digests: readonly Digest[] = modelKinds.map((_, index) => toDigest(`sha256:${String(index).repeat(64)}`));

export function digestOf(model: number): Digest {
  const digest = digests[model];
  if (!digest) throw new RangeError(`no model ${model}`);
  return digest;
}

export function simNodeId(index: number): NodeId {
  const digit = (value: number): string => 'ABCDEFGHJKLMNPQRSTUVWXYZ'[value % 24] ?? 'A';
  return toNodeId(
    `12D3KooW${'A'.repeat(40)}${digit(Math.floor(index / 576))}${digit(Math.floor(index / 24))}${digit(index)}`,
  );
}

/** A model as its node tells of it. */
export function modelFacts(model: number, learned: LearnedFacts | undefined): ModelFacts {
  const {name, gigabytes, billions} = modelOf(model);
  return {
    digest: digestOf(model),
    names: [name],
    sizeBytes: gigabytes * 1e9,
    needBytes: gigabytes * 1e9,
    architecture: '',
    quant: '',
    parameters: billions * 1e9,
    contextMax: 32_768,
    capabilities: ['chat'],
    demo: false,
    ...(learned ? {learned} : {}),
  };
}

/** Tokens that one engine keeps of the prompts it has read. */
const cacheTokensMax = 60_000;

/** Notes what an engine has read, in tokens, and forgets what was not used for longest. */
export function remember(cache: Map<string, number>, key: string, tokens: number): void {
  cache.delete(key);
  cache.set(key, tokens);
  let sum = 0;
  for (const kept of cache.values()) sum += kept;
  for (const [oldest, kept] of cache) {
    if (sum <= cacheTokensMax) return;
    cache.delete(oldest);
    sum -= kept;
  }
}

/** What a machine would have measured if it had all the time in the world. */
export function trueFacts(kind: NodeKind, model: number): LearnedFacts {
  const prefillTps = prefillSpeed(kind, modelOf(model));
  const decodeTps = decodeSpeed(kind, modelOf(model));
  const loadMs = 1000 * loadSeconds(kind, modelOf(model));
  const holdMs = 1000 * (600 / prefillTps + (250 * (1 + kind.crowding * (kind.slots - 1))) / decodeTps);
  return {prefillTps, decodeTps, loadMs, holdMs, outputTokens: 250, bytesPerToken: 4};
}

/** What a machine believes of itself by its kind. */
export function guess(kind: NodeKind, next: Chance, error: number): HardwareFacts {
  return {
    memoryBytesPerSecond: 1e9 * kind.memoryGigabytesPerSecond * logNormal(next, 1, error),
    operationsPerSecond: 1e12 * kind.teraflops * logNormal(next, 1, error),
    diskBytesPerSecond: 1e9 * kind.diskGigabytesPerSecond * logNormal(next, 1, error),
  };
}
