import {constants} from 'node:fs';
import {describeError, Fault} from '@hearsay/core';
import {openDoor, openThrough} from './file-door.ts';
import type {FileDoor, OpenFile} from './file-door.ts';
import {badFile, GgufCursor} from './gguf-cursor.ts';
import {tensorTypes} from './gguf-types.ts';

export type GgufScalar = string | number | boolean;

interface GgufList {
  readonly count: number;
  /** Undefined when the list is longer than anything but vocabularies ever is. */
  readonly items: readonly GgufScalar[] | undefined;
}

/** What the header of one file says, without its vocabulary and the places of its tensors. */
export interface GgufHeader {
  readonly version: number;
  readonly metadata: ReadonlyMap<string, GgufScalar | GgufList>;
  readonly tensors: TensorSums;
  /** True when the vocabulary has the mark before which a text to fill in begins. */
  readonly hasInsertToken: boolean;
}

interface TensorSums {
  readonly count: number;
  readonly weightsBytes: number;
  readonly parameters: number;
  /** By the number of their type. */
  readonly bytesByType: ReadonlyMap<number, number>;
  /** True when the model ends in a layer that judges instead of one that speaks. */
  readonly hasClassifier: boolean;
}

/** A hundred times what models have; each costs at least 13 bytes of header. */
const metadataMax = 8192;

/** Mixtures with one tensor per expert have some ten thousand. */
const tensorsMax = 262_144;

/** The format's own limit. */
const keyBytesMax = 65_535;

/** The largest vocabularies have 262,144 tokens and some 600,000 merges. */
const listItemsMax = 8 * 1024 * 1024;

/** Lists that matter to us have an item per layer. */
const listItemsKeptMax = 1024;

/** More than the engine allows (4), so that its successor can. */
const dimensionsMax = 8;

/** Bytes of the scalar types, by their number in the file; 8 is text, 9 a list. */
const scalarBytes: readonly (number | undefined)[] = [1, 1, 2, 2, 4, 4, 4, 1, undefined, undefined, 8, 8, 8];

/** The marks that llama-server knows, under which models that fill in text were trained. */
const insertTokens: ReadonlySet<string> = new Set([
  '<|fim_prefix|>',
  '<fim-prefix>',
  '<fim_prefix>',
  '<｜fim▁begin｜>',
  '<PRE>',
  '▁<PRE>',
  '<|code_prefix|>',
  '<|prefix|>',
]);
const insertTokenBytesMax = 24;

/**
 * Reads the header of a model file, never its weights, and checks that the weights it promises are there. Whatever is
 * wrong with the file, it throws BAD_FILE with a message for people and a `reason` (`BadFileReason`) in the details;
 * else only the signal's reason.
 */
export async function readGguf(path: string, signal?: AbortSignal, door: FileDoor = openDoor): Promise<GgufHeader> {
  signal?.throwIfAborted();
  try {
    // Not blocking: a pipe without a writer would never open.
    await using file = await openThrough(door, path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    return await readOpened(file, signal);
  } catch (cause) {
    signal?.throwIfAborted();
    const details = cause instanceof Fault ? cause.details : {reason: 'unreadable'};
    const message = cause instanceof Fault ? cause.message : `it cannot be read: ${describeError(cause)}`;
    throw new Fault('BAD_FILE', message, {cause, details: {...details, path}});
  }
}

async function readOpened(file: OpenFile, signal: AbortSignal | undefined): Promise<GgufHeader> {
  const found = await file.stat();
  if (!found.isFile()) throw badFile('not-gguf', 'it is not a file; name a model file');
  const cursor = new GgufCursor(file, found.size, signal);
  const {version, tensorCount, metadataCount} = await readStart(cursor, found.size);
  const metadata = new Map<string, GgufScalar | GgufList>();
  let hasInsertToken = false;
  for (let index = 0; index < metadataCount; index++) {
    const key = await cursor.text(keyBytesMax);
    if (metadata.has(key)) throw damaged('a key appears twice');
    await cursor.need(4);
    const type = cursor.uint32();
    const isTokens = key === 'tokenizer.ggml.tokens';
    metadata.set(
      key,
      type === 9 ? await readList(cursor, isTokens ? noteToken : undefined) : await readScalar(cursor, type),
    );
  }
  const tensors = await readTensors(cursor, tensorCount, found.size, alignmentOf(metadata));
  return {version, metadata, tensors, hasInsertToken};

  function noteToken(token: string): void {
    hasInsertToken ||= insertTokens.has(token);
  }
}

interface Start {
  readonly version: number;
  readonly tensorCount: number;
  readonly metadataCount: number;
}

async function readStart(cursor: GgufCursor, fileBytes: number): Promise<Start> {
  if (fileBytes < 4) throw badFile('not-gguf', `it is not a GGUF file (${fileBytes} bytes long); remove it`);
  await cursor.need(4);
  if (cursor.take(4).toString('latin1') !== 'GGUF') {
    throw badFile('not-gguf', 'it is not a GGUF file (its first bytes are others); download or convert it again');
  }
  await cursor.need(20);
  const version = cursor.uint32();
  if (version !== 2 && version !== 3) throw badFile('not-gguf', versionProblem(version));
  const tensorCount = cursor.uint64();
  const metadataCount = cursor.uint64();
  if (tensorCount > tensorsMax) throw damaged(`${tensorCount} tensors`);
  if (metadataCount > metadataMax) throw damaged(`${metadataCount} keys`);
  return {version, tensorCount, metadataCount};
}

function versionProblem(version: number): string {
  const isSwapped = version !== 0 && version % 0x1_00_00 === 0;
  if (isSwapped) return 'it was made for big-endian machines; download the little-endian file';
  return `it is GGUF version ${version}, and only 2 and 3 are in use; download or convert it again`;
}

async function readScalar(cursor: GgufCursor, type: number): Promise<GgufScalar> {
  if (type === 8) return cursor.text();
  const bytes = bytesOf(type);
  await cursor.need(bytes);
  return decodeScalar(cursor.take(bytes), type);
}

function decodeScalar(bytes: Buffer, type: number): GgufScalar {
  switch (type) {
    case 1:
      return bytes.readInt8();
    case 2:
      return bytes.readUInt16LE();
    case 3:
      return bytes.readInt16LE();
    case 4:
      return bytes.readUInt32LE();
    case 5:
      return bytes.readInt32LE();
    case 6:
      return bytes.readFloatLE();
    case 7:
      return bytes.readUInt8() !== 0;
    case 10:
      return Number(bytes.readBigUInt64LE());
    case 11:
      return Number(bytes.readBigInt64LE());
    case 12:
      return bytes.readDoubleLE();
    default:
      return bytes.readUInt8();
  }
}

async function readList(cursor: GgufCursor, onToken: ((token: string) => void) | undefined): Promise<GgufList> {
  await cursor.need(12);
  const type = cursor.uint32();
  const count = cursor.uint64();
  if (count > listItemsMax) throw damaged(`a list of ${count} items`);
  if (type === 8 && (onToken !== undefined || count > listItemsKeptMax)) {
    await passTexts(cursor, count, onToken);
    return {count, items: undefined};
  }
  if (count > listItemsKeptMax) {
    cursor.skip(count * bytesOf(type));
    return {count, items: undefined};
  }
  const items: GgufScalar[] = [];
  while (items.length < count) items.push(await readScalar(cursor, type));
  return {count, items};
}

/**
 * Vocabularies: hundreds of thousands of short texts, so only those that may be marks are decoded, and only the window
 * waits.
 */
async function passTexts(cursor: GgufCursor, count: number, onToken?: (token: string) => void): Promise<void> {
  for (let index = 0; index < count; index++) {
    if (!cursor.has(8)) await cursor.need(8);
    const length = cursor.uint64();
    if (onToken === undefined || length > insertTokenBytesMax) {
      cursor.skip(length);
    } else {
      if (!cursor.has(length)) await cursor.need(length);
      const bytes = cursor.take(length);
      if (bytes[length - 1] === closingAngle) onToken(bytes.toString('utf8'));
    }
  }
}

const closingAngle = 0x3e;

async function readTensors(
  cursor: GgufCursor,
  count: number,
  fileBytes: number,
  alignment: number,
): Promise<TensorSums> {
  const tensors: TensorPlace[] = [];
  let hasClassifier = false;
  while (tensors.length < count) {
    const name = await cursor.text(keyBytesMax);
    hasClassifier ||= name.startsWith('cls.output');
    tensors.push(await readTensor(cursor));
  }
  const dataBytes = fileBytes - Math.ceil(cursor.position / alignment) * alignment;
  return {count, hasClassifier, ...sumTensors(tensors, dataBytes)};
}

interface TensorPlace {
  readonly type: number;
  readonly parameters: number;
  readonly offset: number;
}

async function readTensor(cursor: GgufCursor): Promise<TensorPlace> {
  await cursor.need(4);
  const dimensions = cursor.uint32();
  if (dimensions > dimensionsMax) throw damaged(`a tensor of ${dimensions} dimensions`);
  await cursor.need(dimensions * 8 + 12);
  let parameters = 1;
  for (let index = 0; index < dimensions; index++) parameters *= cursor.uint64();
  if (!Number.isSafeInteger(parameters)) throw damaged('a tensor of impossible size');
  return {parameters, type: cursor.uint32(), offset: cursor.uint64()};
}

/** Of types that are newer than this program, the size is where the next tensor begins. */
function sumTensors(tensors: readonly TensorPlace[], dataBytes: number): Omit<TensorSums, 'count' | 'hasClassifier'> {
  const bytesByType = new Map<number, number>();
  let parameters = 0;
  let end = dataBytes;
  for (const tensor of tensors.toSorted((a, b) => b.offset - a.offset)) {
    const type = tensorTypes.get(tensor.type);
    const bytes = type ? Math.ceil(tensor.parameters / type.weights) * type.bytes : Math.max(0, end - tensor.offset);
    if (tensor.offset + bytes > dataBytes) throw cutOff(tensor.offset + bytes - Math.max(0, dataBytes));
    bytesByType.set(tensor.type, (bytesByType.get(tensor.type) ?? 0) + bytes);
    parameters += tensor.parameters;
    end = tensor.offset;
  }
  const weightsBytes = [...bytesByType.values()].reduce((sum, bytes) => sum + bytes, 0);
  return {weightsBytes, parameters, bytesByType};
}

/** Weights begin at a multiple of this. */
function alignmentOf(metadata: GgufHeader['metadata']): number {
  const alignment = metadata.get('general.alignment') ?? 32;
  if (typeof alignment !== 'number' || !(alignment >= 1 && alignment <= 1_048_576)) throw damaged('its alignment');
  return alignment;
}

function bytesOf(type: number): number {
  const bytes = scalarBytes[type];
  if (bytes === undefined) throw damaged(`a value of unknown type ${type}`);
  return bytes;
}

function cutOff(missingBytes: number): Fault {
  const message = `it is incomplete (at least ${missingBytes} bytes are missing at its end); download it again`;
  return badFile('incomplete', message, {missingBytes});
}

function damaged(what: string): Fault {
  return badFile('damaged', `it is damaged (${what} in its header); download it again`);
}
