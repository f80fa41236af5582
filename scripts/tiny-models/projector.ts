import {
  bool,
  float32,
  float32s,
  tensor,
  text,
  uint32,
  type GgufContent,
  type MetadataValue,
  type Tensor,
} from './gguf-writer.ts';
import {randomNumbers} from './random-numbers.ts';

export type Sense = 'hearing' | 'sight';

/** Length of the vectors that go into the model: that of the counters. */
const modelWidth = 128;

/** Sound is cut into frames of 40 ms at 16 kHz, each of which becomes one token. */
const samplesPerToken = 640;

const pixelsPerSide = 8; // of a patch, which becomes one token
const patchWidth = 32;

/** Patches in a row that have a place of their own: an image becomes at most 1120 tokens, of any width and height. */
const placesMax = 1120;

/**
 * A projector (`mmproj`) that lets a counter hear or see: what a recording or an image becomes is random, and the
 * counter counts as ever. Of all kinds that llama.cpp knows these two, of the unified Gemma 4, have the fewest parts:
 * no layers, only the projection. The server refuses one whose vectors do not have the model's length.
 */
export function projectorContent(name: string, sense: Sense): GgufContent {
  return sense === 'hearing' ? hearingContent(name) : sightContent(name);
}

function hearingContent(name: string): GgufContent {
  const random = randomNumbers(21);
  const size = samplesPerToken * modelWidth;
  return {
    metadata: new Map([
      ...commonMetadata(name, 'audio', samplesPerToken),
      ['clip.has_audio_encoder', bool(true)],
      ['clip.audio.projector_type', text('gemma4ua')],
      ['clip.audio.num_mel_bins', uint32(samplesPerToken)],
    ]),
    tensors: [tensor('mm.a.input_projection.weight', [samplesPerToken, modelWidth], random.bell(size, 0.05), 'F16')],
  };
}

function sightContent(name: string): GgufContent {
  const random = randomNumbers(22);
  const patchSize = pixelsPerSide * pixelsPerSide * 3;
  const matrix = (part: string, rowLength: number, rows: number): Tensor =>
    tensor(part, [rowLength, rows], random.bell(rowLength * rows, 0.05), 'F16');
  return {
    metadata: new Map([
      ...commonMetadata(name, 'vision', patchWidth),
      ['clip.has_vision_encoder', bool(true)],
      ['clip.vision.projector_type', text('gemma4uv')],
      ['clip.vision.image_size', uint32(pixelsPerSide * 16)],
      ['clip.vision.patch_size', uint32(pixelsPerSide)],
      ['clip.vision.projector.scale_factor', uint32(1)],
      ['clip.vision.image_mean', float32s([0, 0, 0])],
      ['clip.vision.image_std', float32s([1, 1, 1])],
    ]),
    tensors: [
      matrix('v.patch_embd.weight', patchSize, patchWidth),
      tensor('v.patch_embd.bias', [patchWidth], new Float32Array(patchWidth), 'F32'),
      // The places in a row, then those in a column.
      tensor(
        'v.position_embd.weight',
        [patchWidth, placesMax, 2],
        random.bell(patchWidth * placesMax * 2, 0.05),
        'F16',
      ),
      ...norm('v.patch_norm.1', patchSize),
      ...norm('v.patch_norm.2', patchWidth),
      ...norm('v.patch_norm.3', patchWidth),
      matrix('mm.input_projection.weight', patchWidth, modelWidth),
    ],
  };
}

/** The server wants to be told of layers, also when there are none. */
function commonMetadata(name: string, encoder: 'audio' | 'vision', width: number): [string, MetadataValue][] {
  return [
    ['general.architecture', text('clip')],
    ['general.name', text(name)],
    ['general.type', text('mmproj')],
    ['general.file_type', uint32(1)],
    [`clip.${encoder}.embedding_length`, uint32(width)],
    [`clip.${encoder}.attention.head_count`, uint32(1)],
    [`clip.${encoder}.feed_forward_length`, uint32(width)],
    [`clip.${encoder}.block_count`, uint32(0)],
    [`clip.${encoder}.projection_dim`, uint32(modelWidth)],
    [`clip.${encoder}.attention.layer_norm_epsilon`, float32(1e-6)],
  ];
}

function norm(part: string, width: number): Tensor[] {
  return [
    tensor(`${part}.weight`, [width], new Float32Array(width).fill(1), 'F32'),
    tensor(`${part}.bias`, [width], new Float32Array(width), 'F32'),
  ];
}
