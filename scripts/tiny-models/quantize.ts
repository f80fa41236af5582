/** How weights are stored. The numbers are those of the file format. */
export const weightTypes = {F32: 0, F16: 1, Q4_0: 2, Q8_0: 8} as const;

export type WeightType = keyof typeof weightTypes;

/** Both quantized types store 32 weights and one half-precision scale per block. */
const blockWeights = 32;

const encoders: Readonly<Record<WeightType, (values: Float32Array) => Uint8Array>> = {
  F32: values => new Uint8Array(values.buffer, values.byteOffset, values.byteLength),
  F16: values => new Uint8Array(new Float16Array(values).buffer),
  Q4_0: values => encodeBlocks(values, 18, writeBlockQ4),
  Q8_0: values => encodeBlocks(values, 34, writeBlockQ8),
};

/**
 * The bytes of the weights in a file. Rows of quantized weights must be a multiple of 32 long. Little-endian machines
 * only.
 */
export function encodeWeights(values: Float32Array, type: WeightType): Uint8Array {
  return encoders[type](values);
}

type WriteBlock = (weights: Float32Array, target: DataView) => void;

function encodeBlocks(values: Float32Array, blockBytes: number, writeBlock: WriteBlock): Uint8Array {
  if (values.length % blockWeights !== 0) throw new RangeError('quantized weights come in blocks of 32');
  const blocks = values.length / blockWeights;
  const bytes = new Uint8Array(blocks * blockBytes);
  for (let block = 0; block < blocks; block++) {
    const weights = values.subarray(block * blockWeights, (block + 1) * blockWeights);
    writeBlock(weights, new DataView(bytes.buffer, block * blockBytes, blockBytes));
  }
  return bytes;
}

/** Scale, then one signed byte per weight. */
function writeBlockQ8(weights: Float32Array, target: DataView): void {
  const scale = Math.abs(furthestFromZero(weights)) / 127;
  target.setFloat16(0, scale, true);
  for (const [index, weight] of weights.entries())
    target.setInt8(2 + index, scale === 0 ? 0 : Math.round(weight / scale));
}

/** Scale, then four bits per weight: the first half of the block in the low bits, the second in the high bits. */
function writeBlockQ4(weights: Float32Array, target: DataView): void {
  const scale = furthestFromZero(weights) / -8; // so that the largest weight, of either sign, is exact
  target.setFloat16(0, scale, true);
  const level = (weight: number): number => (scale === 0 ? 8 : Math.min(15, Math.floor(weight / scale + 8.5)));
  for (let index = 0; index < blockWeights / 2; index++) {
    target.setUint8(2 + index, level(weights[index] ?? 0) | (level(weights[index + blockWeights / 2] ?? 0) << 4));
  }
}

function furthestFromZero(weights: Float32Array): number {
  return weights.reduce((furthest, weight) => (Math.abs(weight) > Math.abs(furthest) ? weight : furthest), 0);
}
