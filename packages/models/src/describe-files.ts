import {basename} from 'node:path';
import {Fault} from '@hearsay/core';
import type {FileDoor} from './file-door.ts';
import type {FileStamp} from './file-stamp.ts';
import {describeGguf, needBytes, withProjector} from './describe-gguf.ts';
import type {GgufDescription} from './describe-gguf.ts';
import type {Description, HeaderFacts, Holding} from './list-models.ts';
import {parseShardName} from './model-names.ts';
import {readGguf} from './read-gguf.ts';
import type {GgufHeader} from './read-gguf.ts';

/** The context that a model is judged by until an engine asks for another: what one slot gets by default. */
const contextTokensDefault = 8192;

/** Beside the process itself: thread stacks, buffers for requests, what the allocator keeps. With it, 64 MiB. */
const marginBytes = 49 * 1024 * 1024;

/**
 * Reads the headers of one model's files: its shards in order, then its projector. Whatever is wrong with them is an
 * unusable description with the reason; throws only the signal's reason.
 */
export async function describeFiles(
  {files, projector, door}: Pick<Holding, 'files' | 'projector' | 'door'>,
  knows: (architecture: string) => Promise<boolean>,
  signal: AbortSignal,
): Promise<Description> {
  const [first, ...others] = files;
  const firstHeader = await readHeader(first, door, signal);
  if (isUnusable(firstHeader)) return firstHeader;
  const headers: [GgufHeader, ...GgufHeader[]] = [firstHeader];
  for (const file of others) {
    if (file === projector) continue;
    const header = await readHeader(file, door, signal);
    if (isUnusable(header)) return {...factsOf(describeGguf(headers)), ...header};
    headers.push(header);
  }
  const model = describeGguf(headers);
  const senses = projector && (await readHeader(projector, door, signal));
  if (senses && isUnusable(senses)) return {...factsOf(model), ...senses, problem: `its projector: ${senses.problem}`};
  if (senses && describeGguf([senses]).type !== 'mmproj') {
    return {...factsOf(model), kind: 'unusable', problem: 'its projector is none by its header', retry: false};
  }
  const description = senses ? withProjector(model, senses) : model;
  const problem =
    findProblem(description, headers, basename(first.path)) ?? (await findUnknown(description.architecture, knows));
  if (problem !== undefined) return {...factsOf(description), kind: 'unusable', problem, retry: false};
  return {...factsOf(description), kind: 'usable'};
}

type Unusable = Extract<Description, {readonly kind: 'unusable'}>;

async function readHeader({path}: FileStamp, door: FileDoor, signal: AbortSignal): Promise<GgufHeader | Unusable> {
  try {
    return await readGguf(path, signal, door);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    const shard = parseShardName(basename(path));
    const problem =
      shard && shard.count > 1 ? `shard ${shard.index} of ${shard.count}: ${error.message}` : error.message;
    return {kind: 'unusable', problem, retry: isPassing(error)};
  }
}

/** The disk, not the file, is what stands in the way. */
function isPassing({details}: Fault): boolean {
  return details['reason'] === 'unreadable' || details['reason'] === 'hung';
}

function isUnusable(read: GgufHeader | Unusable): read is Unusable {
  return 'kind' in read;
}

/** What each header alone cannot tell: whether it is the right file in the right place. */
function findProblem(
  {type, shard, weightsBytes, architecture}: GgufDescription,
  headers: readonly GgufHeader[],
  fileName: string,
): string | undefined {
  if (type !== 'model') return `it is no model of its own but a part of one (${type})`;
  if (architecture === 'unknown') return 'its header names no architecture, so that no engine can run it';
  const named = parseShardName(fileName)?.count ?? 1;
  const meant = shard?.count ?? 1;
  if (named !== meant) {
    return meant > 1
      ? `it is one of ${meant} shards by its header, but not by its name; give all shards their original names back`
      : `it is a whole model by its header, but one of ${named} shards by its name; remove the shard suffix`;
  }
  // While shards are missing, that is the problem to tell.
  if (weightsBytes === 0 && headers.length === named) return 'it holds no weights, only a vocabulary';
  return undefined;
}

async function findUnknown(
  architecture: string,
  knows: (architecture: string) => Promise<boolean>,
): Promise<string | undefined> {
  if (await knows(architecture)) return undefined;
  return `unknown architecture '${architecture}': the llama-server of this node cannot run it; a newer one may`;
}

function factsOf(description: GgufDescription): HeaderFacts {
  const {architecture, quant, parameters, contextMax, capabilities} = description;
  const context = Math.min(contextMax || contextTokensDefault, contextTokensDefault);
  const need = needBytes(description, context) + marginBytes;
  return {needBytes: need, architecture, quant, parameters, contextMax, capabilities};
}
