import {mkdtemp, rm} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import type {ExecutionContext} from 'ava';
import {toDigest} from '@hearsay/core';
import type {EngineHost, EngineSnapshot, Reservation, StoredModel, WorkResponse} from '@hearsay/core';
import {startEngineHost} from '@hearsay/engine';
import type {EngineHostConfig} from '@hearsay/engine';
import {makeTinyModels, tinyModelFile} from '../../scripts/make-tiny-models.ts';
import type {TinyModelName} from '../../scripts/make-tiny-models.ts';
import {realEnvironment} from './environment.ts';

/** Real engines in tests: a host with a llama-server, tiny models, and requests whose answers can be counted. */

type Teardown = Pick<ExecutionContext, 'teardown'>;

/** Longest wait for a condition: a shared machine may be slow, and a wrong one never comes. */
const waitMsMax = 100_000;

/** The llama-server that `npm test` has made sure of. */
export function testEngine(): string {
  const command = process.env['HEARSAY_TEST_ENGINE'];
  if (command === undefined || command === '') {
    throw new Error('HEARSAY_TEST_ENGINE is not set: run `npm test`, or set it to the path of a llama-server');
  }
  return command;
}

/** The file of a tiny model, made when it is missing. */
export async function tinyModelPath(name: TinyModelName): Promise<string> {
  const folder = process.env['HEARSAY_TEST_MODELS'] || join(tmpdir(), 'hearsay-tiny-models');
  await makeTinyModels(folder, [name]);
  return join(folder, tinyModelFile(name));
}

export async function tinyModel(name: TinyModelName): Promise<StoredModel> {
  return storedModel(name, await tinyModelPath(name));
}

/** A file as a model store would list it. */
export function storedModel(name: string, file: string, changes: Partial<StoredModel> = {}): StoredModel {
  return {
    key: file,
    digest: toDigest(`unproven:${name.replaceAll(/[^\w.-]/gu, '-').slice(0, 64)}`),
    names: [name],
    files: [file],
    sizeBytes: 1e6,
    needBytes: 2e7,
    architecture: 'llama',
    quant: 'F16',
    parameters: 4e5,
    contextMax: 2048,
    capabilities: ['chat', 'completion'],
    demo: false,
    problem: undefined,
    hashed: undefined,
    modifiedWallMs: 0,
    ...changes,
  };
}

export function hostConfig(runFolder: string, changes: Partial<EngineHostConfig> = {}): EngineHostConfig {
  return {
    engine: {command: testEngine(), leadingArguments: [], description: 'test engine'},
    runFolder,
    slots: 2,
    contextMax: 2048,
    keepAliveMs: Infinity,
    threads: 1,
    cacheRamMiB: 0,
    extraArguments: [],
    environment: process.env,
    ...changes,
  };
}

/** A folder that goes with the test. */
export async function temporaryFolder(t: Teardown): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-engine-'));
  t.teardown(async () => rm(folder, {recursive: true, force: true, maxRetries: 3}));
  return folder;
}

/** A running host; it is closed with the test. */
export async function trialHost(t: Teardown, changes: Partial<EngineHostConfig> = {}): Promise<EngineHost> {
  const runFolder = changes.runFolder ?? join(await temporaryFolder(t), 'run');
  const host = await startEngineHost(hostConfig(runFolder, changes), realEnvironment());
  // A daemon lives by its sockets; here nothing but this timer keeps the process while an engine backs off.
  const alive = setInterval(() => {}, 1_000);
  t.teardown(async () => {
    await host[Symbol.asyncDispose]();
    clearInterval(alive);
  });
  return host;
}

/** A slot that must be had. */
export function take(host: EngineHost, model: StoredModel, force = false): Reservation {
  const answer = host.reserve(model, {force});
  if (answer.kind !== 'accepted') throw new Error(`not accepted: ${JSON.stringify(answer)}`);
  return answer;
}

/** Runs a chat that counts to `tokens`; `endless` ones go on far beyond what a test waits for. */
export function chat(
  reservation: Reservation,
  options: {
    readonly tokens?: number;
    readonly endless?: boolean;
    readonly prompt?: string;
    readonly signal?: AbortSignal;
  } = {},
): Promise<WorkResponse> {
  const body = {
    stream: true,
    messages: [{role: 'user', content: options.prompt ?? 'Count.'}],
    max_tokens: options.endless === true ? 100_000 : (options.tokens ?? 5),
    ...(options.endless === true ? {ignore_eos: true} : {}),
  };
  const call = {endpoint: '/v1/chat/completions', body: Buffer.from(JSON.stringify(body))} as const;
  return reservation.run(call, options.signal ?? new AbortController().signal);
}

/** The text that a streamed chat says. */
export async function spoken(response: WorkResponse): Promise<string> {
  const chunks = await Array.fromAsync(response.body);
  const text = Buffer.concat(chunks).toString();
  return [...text.matchAll(/"content":"(?<piece>[^"]*)"/gu)].map(match => match.groups?.['piece'] ?? '').join('');
}

/** Reserves, counts to three and gives the slot back. */
export async function countToThree(host: EngineHost, model: StoredModel): Promise<string> {
  await using reservation = take(host, model);
  return await spoken(await chat(reservation, {tokens: 3}));
}

export function snapshotOf(host: EngineHost, model: StoredModel): EngineSnapshot | undefined {
  return host.engines().find(({key}) => key === model.key);
}

/** Waits until the condition gives something other than undefined or false. */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  msMax: number = waitMsMax,
): Promise<NonNullable<T>> {
  const limitMs = performance.now() + msMax;
  for (;;) {
    const value = await condition();
    if (value !== undefined && value !== null && value !== false) return value;
    if (performance.now() > limitMs) throw new Error(`waited ${msMax} ms for ${what}`);
    await new Promise(resolve => void setTimeout(resolve, 5));
  }
}

/** True while a process of that id exists, as a zombie too. */
export function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
