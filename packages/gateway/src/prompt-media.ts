import type {Capability} from '@hearsay/core';
import {isObject} from './json.ts';
import {translateMedium} from './ollama/media.ts';

/** Pure: the senses that a prompt in llama-server's own form needs; its images and recordings stand beside its text. */
export function promptNeeds(prompt: unknown): readonly Capability[] {
  const prompts: readonly unknown[] = Array.isArray(prompt) ? prompt : [prompt];
  const kinds = new Set(prompts.flatMap(mediaOf).map(kindOf));
  return [...(kinds.has('image') ? (['vision'] as const) : []), ...(kinds.has('audio') ? (['audio'] as const) : [])];
}

function mediaOf(prompt: unknown): readonly unknown[] {
  const media = isObject(prompt) ? prompt['multimodal_data'] : undefined;
  return Array.isArray(media) ? media : [];
}

/** What cannot be told is for the engine to refuse. */
function kindOf(medium: unknown): 'image' | 'audio' | undefined {
  const translated = translateMedium(medium);
  return translated === 'webp' ? 'image' : translated?.kind;
}
