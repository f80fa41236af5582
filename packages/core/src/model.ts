import type {ModelShape} from './fit.ts';
import type {Digest} from './ids.ts';
import type {LearnedFacts} from './learned.ts';

/** All that a model can be asked for, in the order in which people are told of it. */
export const capabilities = [
  'chat',
  'completion',
  'embeddings',
  'rerank',
  'tools',
  'thinking',
  'insert',
  'vision',
  'audio',
] as const;

/** What a model can be asked for. From the file's header and chat template, until an engine has confirmed it. */
export type Capability = (typeof capabilities)[number];

/** What a node says about one model it stores. Goes into its inventory; holds nothing private (no paths). */
export interface ModelFacts {
  readonly digest: Digest;
  /** Names people use, the canonical one first. Compared without case. */
  readonly names: readonly [string, ...string[]];
  /** All files together: every shard and the projector. */
  readonly sizeBytes: number;
  /** The least that an engine would need: weights, cache for one slot of the least context, buffers, the process. */
  readonly needBytes: number;
  readonly architecture: string;
  /** Quantization as people write it, for example `Q8_0`. */
  readonly quant: string;
  readonly parameters: number;
  /** The context the model was trained for, in tokens. */
  readonly contextMax: number;
  readonly capabilities: readonly Capability[];
  /** True for the toy that ships with hearsay: offered only while nothing else is known. */
  readonly demo: boolean;
  /** What the node has measured of it; absent before the first request. */
  readonly learned?: LearnedFacts;
  /** What its store adds to it under some of its names. */
  readonly presets?: readonly ModelPreset[];
}

/** What a store adds to the bare weights under one of their names, as Ollama's tags do. For dialects that follow it. */
export interface ModelPreset {
  /** The name that it holds for. */
  readonly name: string;
  /** In Ollama's own template language, which llama-server does not read; known only where the model is. */
  readonly template: string | undefined;
  /** The system prompt for requests that bring none. */
  readonly system: string | undefined;
  /** Ollama's options, for example `temperature` or `stop`, for requests that set none. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** A model of this machine, with what must never leave it. */
export interface StoredModel extends ModelFacts {
  /** Stable name of the files on this machine; stays the same while the digest is being computed. */
  readonly key: string;
  /** Paths of all shards in order, the first of which is passed to llama-server, and last the projector. */
  readonly files: readonly [string, ...string[]];
  /** The file that lets the model see or hear; also the last of `files`. */
  readonly projector?: string | undefined;
  /** Why it cannot be used, in words a person can act on. */
  readonly problem: string | undefined;
  /** Share of the bytes hashed so far, 0…1; undefined when the digest is proven. */
  readonly hashed: number | undefined;
  readonly modifiedWallMs: number;
  /** What it takes in memory, by its header; absent when that was not read: then `needBytes` is all that is known. */
  readonly shape?: ModelShape | undefined;
}

/** What an engine says of a model that it has loaded; undefined where it does not tell. */
export interface LoadedFacts {
  /** Context that one slot really got, in tokens. */
  readonly context: number | undefined;
  readonly sees: boolean | undefined;
  readonly hears: boolean | undefined;
  readonly chatTemplate: string | undefined;
  /** The owner has chosen that template; else it is the model's, or a stand-in where that has none. */
  readonly isTemplateChosen: boolean;
  readonly callsTools: boolean | undefined;
}

/** The models of this machine, kept current. */
export interface ModelStore extends AsyncDisposable {
  list(): readonly StoredModel[];
  /** The model with this digest, proven or still unproven; undefined when it is not here or has a problem. */
  find(digest: Digest): StoredModel | undefined;
  /** Calls back after every change of the list, until disposed. */
  onChange(listener: () => void): Disposable;
}
