import {basename} from 'node:path';
import {estimateFit, Fault, leastSize, noWish} from '@hearsay/core';
import type {FileStamp} from './file-stamp.ts';
import {describeGguf} from './describe-gguf.ts';
import type {GgufDescription} from './describe-gguf.ts';
import type {Description, HeaderFacts} from './list-models.ts';
import {parseShardName} from './model-names.ts';
import {readGguf} from './read-gguf.ts';
import type {GgufHeader} from './read-gguf.ts';

/**
 * Reads the headers of one model's files, in the order of its shards. Whatever is wrong with them is an unusable
 * description with the reason; throws only the signal's reason.
 */
export async function describeFiles(
  [first, ...others]: readonly [FileStamp, ...FileStamp[]],
  signal: AbortSignal,
): Promise<Description> {
  const firstHeader = await readHeader(first, signal);
  if (isUnusable(firstHeader)) return firstHeader;
  const headers: [GgufHeader, ...GgufHeader[]] = [firstHeader];
  for (const file of others) {
    const header = await readHeader(file, signal);
    if (isUnusable(header)) return {...factsOf(describeGguf(headers)), ...header};
    headers.push(header);
  }
  const description = describeGguf(headers);
  const problem = findProblem(description, headers, basename(first.path));
  if (problem !== undefined) return {...factsOf(description), kind: 'unusable', problem, retry: false};
  return {...factsOf(description), kind: 'usable'};
}

type Unusable = Extract<Description, {readonly kind: 'unusable'}>;

async function readHeader({path}: FileStamp, signal: AbortSignal): Promise<GgufHeader | Unusable> {
  try {
    return await readGguf(path, signal);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    const shard = parseShardName(basename(path));
    const problem =
      shard && shard.count > 1 ? `shard ${shard.index} of ${shard.count}: ${error.message}` : error.message;
    return {kind: 'unusable', problem, retry: error.details['reason'] === 'unreadable'};
  }
}

function isUnusable(read: GgufHeader | Unusable): read is Unusable {
  return 'kind' in read;
}

/** What each header alone cannot tell: whether it is the right file in the right place. */
function findProblem(
  {type, shard, shape}: GgufDescription,
  headers: readonly GgufHeader[],
  fileName: string,
): string | undefined {
  if (type !== 'model') return `it is no model of its own but a part of one (${type})`;
  const named = parseShardName(fileName)?.count ?? 1;
  const meant = shard?.count ?? 1;
  if (named !== meant) {
    return meant > 1
      ? `it is one of ${meant} shards by its header, but not by its name; give all shards their original names back`
      : `it is a whole model by its header, but one of ${named} shards by its name; remove the shard suffix`;
  }
  // While shards are missing, that is the problem to tell.
  if (shape.weightsBytes === 0 && headers.length === named) return 'it holds no weights, only a vocabulary';
  return undefined;
}

function factsOf(description: GgufDescription): HeaderFacts {
  const {architecture, quant, parameters, contextMax, capabilities, shape} = description;
  const conditions = {place: 'ram', keyType: 'f16', valueType: 'f16'} as const;
  const {totalBytes} = estimateFit({...shape, copiedBytes: 0}, leastSize(noWish, contextMax), conditions);
  return {needBytes: totalBytes, architecture, quant, parameters, contextMax, capabilities, shape};
}
