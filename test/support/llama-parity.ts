import {isDeepStrictEqual} from 'node:util';
import type {ExecutionContext} from 'ava';
import {startDaemon} from './daemon.ts';
import {startForeignServer} from './foreign-server.ts';
import {answerOf} from './llama-answer.ts';
import type {LlamaRequest} from './llama-answer.ts';
import {modelFolder, tinyModel} from './models.ts';

/**
 * Requests that a plain llama-server answers, and the same ones to a daemon with the same model: what clients and tests
 * of llama-server rely on must come out alike, apart from ids, times and names.
 */
export type ParityCase = LlamaRequest & {
  readonly title: string;
  /** Why the gateway says something else on purpose: it is then the status that it answers with. */
  readonly differs?: {readonly status: number; readonly because: string};
  /** Fields in which it differs on purpose, at whatever depth. */
  readonly without?: readonly string[];
  /** It may say more than llama-server, but all that llama-server says, and nothing else in its place. */
  readonly mayAdd?: boolean;
};

export function post(title: string, path: string, body: unknown, differs?: ParityCase['differs']): ParityCase {
  return {title, method: 'POST', path, body, ...(differs ? {differs} : {})};
}

/** What makes a model say the same each time. */
const steady = ['--temp', '0'];

/** A plain llama-server and the gateway of a daemon, both with the same model and settings; they end with the test. */
export async function startPair(
  t: Pick<ExecutionContext, 'teardown'>,
  model: string,
  {
    projector,
    variables = {},
  }: {readonly projector?: string; readonly variables?: Readonly<Record<string, string>>} = {},
): Promise<{readonly plain: string; readonly gateway: string}> {
  const beside = projector === undefined ? [] : [projector];
  const flags = [...beside.flatMap(name => ['--mmproj', tinyModel(name)]), ...steady];
  const plain = await startForeignServer(t, {model: tinyModel(`${model}.gguf`), alias: model, flags, variables});
  const {url} = await startDaemon(t, {
    models: [await modelFolder(t, `${model}.gguf`, ...beside)],
    variables: {
      ...variables,
      HEARSAY_SLOTS: '2',
      HEARSAY_CONTEXT: '1024',
      HEARSAY_ENGINE_ARGS: steady.join(','),
    },
  });
  return {plain: plain.url, gateway: url};
}

/** All of them, so that one look tells. */
export async function differences(
  cases: readonly ParityCase[],
  plain: string,
  gateway: string,
): Promise<readonly string[]> {
  const found: string[] = [];
  for (const {title, differs, without = [], mayAdd = false, ...request} of cases) {
    const [theirs, ours] = [await answerOf(plain, request, without), await answerOf(gateway, request, without)];
    const isSame = mayAdd ? says(ours, theirs) : isDeepStrictEqual(ours, theirs);
    const isRight = differs ? ours.status === differs.status : isSame;
    if (!isRight) found.push(JSON.stringify({title, ...request, theirs, ours}));
  }
  return found;
}

/** Whether one answer has every field of the other, at every depth. */
function says(ours: unknown, theirs: unknown): boolean {
  if (typeof theirs !== 'object' || theirs === null || typeof ours !== 'object' || ours === null) {
    return isDeepStrictEqual(ours, theirs);
  }
  if (Array.isArray(theirs)) {
    return (
      Array.isArray(ours) && ours.length === theirs.length && theirs.every((each, index) => says(ours[index], each))
    );
  }
  const known = new Map(Object.entries(ours));
  return Object.entries(theirs).every(([name, value]) => says(known.get(name), value));
}
