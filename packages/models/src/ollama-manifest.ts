import {isObject} from '@hearsay/core';
import type {JsonObject} from '@hearsay/core';

/** The parts of a tag that matter here, each by the sha256 of its blob. */
export interface OllamaLayers {
  readonly model: string | undefined;
  readonly projector: string | undefined;
  readonly template: string | undefined;
  readonly system: string | undefined;
  readonly parameters: string | undefined;
  /** Why llama-server cannot run it. */
  readonly problem: string | undefined;
}

const nothing: OllamaLayers = {
  model: undefined,
  projector: undefined,
  template: undefined,
  system: undefined,
  parameters: undefined,
  problem: undefined,
};

/** A list may name blobs that hold the manifests; one that names lists again would never end. */
const listsMax = 1;

/**
 * Reads a manifest, or a list of manifests for several runners, of which the one with a GGUF file is taken. Never
 * throws: what cannot be used says why.
 */
export async function parseLayers(
  text: string | undefined,
  readBlob: (hash: string) => Promise<string | undefined>,
  lists = 0,
): Promise<OllamaLayers> {
  const manifest = parseObject(text);
  if (manifest === undefined) return {...nothing, problem: 'its manifest is damaged; pull it again with Ollama'};
  const children = listOf(manifest['manifests']);
  if (children.length === 0) return layersOf(listOf(manifest['layers']));
  const child = children.find(isForUs);
  if (child === undefined || lists >= listsMax) {
    return {...nothing, problem: 'it is made for another runner of Ollama, without a GGUF file'};
  }
  if (listOf(child['layers']).length > 0) return layersOf(listOf(child['layers']));
  const hash = hashOf(child);
  return parseLayers(hash === undefined ? undefined : await readBlob(hash), readBlob, lists + 1);
}

function isForUs({format, runner}: JsonObject): boolean {
  return format === 'gguf' || (format === undefined && runner !== 'mlx');
}

function layersOf(layers: readonly JsonObject[]): OllamaLayers {
  const find = (kind: string): string | undefined => {
    const layer = layers.find(({mediaType}) => mediaType === `application/vnd.ollama.image.${kind}`);
    return layer && hashOf(layer);
  };
  const found = {
    model: find('model'),
    projector: find('projector'),
    template: find('template'),
    system: find('system'),
    parameters: find('params'),
  };
  if (find('adapter') !== undefined) {
    return {...found, problem: 'it is an adapter on top of another model, which hearsay does not load'};
  }
  const isElsewhere = found.model === undefined;
  return {...found, problem: isElsewhere ? 'its weights are not on this machine, or not in a GGUF file' : undefined};
}

function hashOf({digest}: JsonObject): string | undefined {
  const [, hash] = (typeof digest === 'string' && /^sha256[:-]([0-9a-f]{64})$/u.exec(digest)) || [];
  return hash;
}

function parseObject(text: string | undefined): JsonObject | undefined {
  try {
    const json: unknown = JSON.parse(text ?? '');
    return isObject(json) ? json : undefined;
  } catch {
    return undefined;
  }
}

function listOf(json: unknown): readonly JsonObject[] {
  return Array.isArray(json) ? json.filter(isObject) : [];
}
