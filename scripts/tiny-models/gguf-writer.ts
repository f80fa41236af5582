import {encodeWeights, weightTypes, type WeightType} from './quantize.ts';

/** A value of the header, already in the bytes of the file. */
export interface MetadataValue {
  readonly type: number;
  readonly bytes: Uint8Array;
}

export interface Tensor {
  readonly name: string;
  /** Length of a row first, as the format wants it. */
  readonly shape: readonly number[];
  readonly type: WeightType;
  readonly bytes: Uint8Array;
}

export interface GgufContent {
  readonly metadata: ReadonlyMap<string, MetadataValue>;
  readonly tensors: readonly Tensor[];
}

const alignmentBytes = 32; // what the format assumes when the header does not say otherwise

export function tensor(name: string, shape: readonly number[], values: Float32Array, type: WeightType): Tensor {
  return {name, shape, type, bytes: encodeWeights(values, type)};
}

function uint16(value: number): MetadataValue {
  return {type: 2, bytes: new Uint8Array(Uint16Array.of(value).buffer)};
}

export function uint32(value: number): MetadataValue {
  return {type: 4, bytes: new Uint8Array(Uint32Array.of(value).buffer)};
}

function int32(value: number): MetadataValue {
  return {type: 5, bytes: new Uint8Array(Int32Array.of(value).buffer)};
}

export function float32(value: number): MetadataValue {
  return {type: 6, bytes: new Uint8Array(Float32Array.of(value).buffer)};
}

export function bool(value: boolean): MetadataValue {
  return {type: 7, bytes: Uint8Array.of(value ? 1 : 0)};
}

export function text(value: string): MetadataValue {
  return {type: 8, bytes: lengthAndText(value)};
}

export function texts(values: readonly string[]): MetadataValue {
  return list(8, values.length, Buffer.concat(values.map(lengthAndText)));
}

export function int32s(values: readonly number[]): MetadataValue {
  return list(5, values.length, new Uint8Array(Int32Array.from(values).buffer));
}

export function float32s(values: readonly number[]): MetadataValue {
  return list(6, values.length, new Uint8Array(Float32Array.from(values).buffer));
}

/** One GGUF file, version 3. */
export function encodeGguf({metadata, tensors}: GgufContent): Uint8Array {
  const parts: Uint8Array[] = [Buffer.from('GGUF'), uint32(3).bytes, uint64(tensors.length), uint64(metadata.size)];
  for (const [key, value] of metadata) parts.push(lengthAndText(key), uint32(value.type).bytes, value.bytes);
  let offset = 0;
  for (const {name, shape, type, bytes} of tensors) {
    parts.push(lengthAndText(name), uint32(shape.length).bytes, ...shape.map(uint64));
    parts.push(uint32(weightTypes[type]).bytes, uint64(offset));
    offset += bytes.length + paddingAfter(bytes.length).length;
  }
  parts.push(paddingAfter(parts.reduce((sum, part) => sum + part.length, 0)));
  for (const {bytes} of tensors) parts.push(bytes, paddingAfter(bytes.length));
  return Buffer.concat(parts);
}

/**
 * The same model in several files, as llama.cpp splits them: the first has the whole header, each its share of the
 * tensors.
 */
export function encodeGgufShards(content: GgufContent, tensorsPerShard: number): readonly Uint8Array[] {
  const count = Math.ceil(content.tensors.length / tensorsPerShard);
  return Array.from({length: count}, (_, index) => {
    const metadata = new Map(index === 0 ? content.metadata : []);
    metadata.set('split.no', uint16(index));
    metadata.set('split.count', uint16(count));
    metadata.set('split.tensors.count', int32(content.tensors.length));
    const first = index * tensorsPerShard;
    return encodeGguf({metadata, tensors: content.tensors.slice(first, first + tensorsPerShard)});
  });
}

function list(elementType: number, count: number, bytes: Uint8Array): MetadataValue {
  return {type: 9, bytes: Buffer.concat([uint32(elementType).bytes, uint64(count), bytes])};
}

function lengthAndText(value: string): Uint8Array {
  const bytes = Buffer.from(value);
  return Buffer.concat([uint64(bytes.length), bytes]);
}

function uint64(value: number): Uint8Array {
  return new Uint8Array(BigUint64Array.of(BigInt(value)).buffer);
}

function paddingAfter(length: number): Uint8Array {
  return new Uint8Array((alignmentBytes - (length % alignmentBytes)) % alignmentBytes);
}
