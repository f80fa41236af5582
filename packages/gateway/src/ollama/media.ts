import type {JsonObject} from '../json.ts';

export type Medium = {readonly kind: 'image' | 'audio'; readonly part: JsonObject};

/** How many base64 characters hold the marks by which a file's type is known. */
const headCharacters = 24;

/**
 * Pure: an entry of Ollama's `images` as a content part of a chat message; its type is read from its first bytes.
 * Undefined: it is no base64. A WebP image is refused by its name, because llama-server cannot decode it.
 */
export function translateMedium(value: unknown): Medium | 'webp' | undefined {
  if (typeof value !== 'string') return undefined;
  const data = value.replace(/^data:[^,]{0,100},/u, '');
  if (data === '' || !/^[\w+/-]{4}/u.test(data)) return undefined;
  const type = sniff(Buffer.from(data.slice(0, headCharacters), 'base64'));
  if (type === 'webp') return 'webp';
  if (type === 'wav' || type === 'mp3' || type === 'flac') {
    return {kind: 'audio', part: {type: 'input_audio', input_audio: {data, format: type}}};
  }
  return {kind: 'image', part: {type: 'image_url', image_url: {url: `data:image/${type};base64,${data}`}}};
}

/** Pure: what the bytes begin; JPEG when nothing else is known. */
export function sniff(head: Buffer): 'png' | 'jpeg' | 'gif' | 'bmp' | 'webp' | 'wav' | 'mp3' | 'flac' {
  const text = head.toString('latin1');
  if (text.startsWith('\x89PNG')) return 'png';
  if (text.startsWith('GIF8')) return 'gif';
  if (text.startsWith('BM')) return 'bmp';
  if (text.startsWith('fLaC')) return 'flac';
  if (text.startsWith('ID3') || /^\xff[\xf2\xf3\xfa\xfb]/u.test(text)) return 'mp3';
  if (text.startsWith('RIFF')) return text.slice(8, 12) === 'WEBP' ? 'webp' : 'wav';
  return 'jpeg';
}
