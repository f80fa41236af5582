import {createHash} from 'node:crypto';
import {nameLengthMax, toDigest} from '@hearsay/core';
import type {Capability, StoredModel} from '@hearsay/core';

/** A model that an external engine serves: what we tell of it, and the name that the engine itself wants to hear. */
export interface ExternalModel {
  readonly stored: StoredModel;
  readonly id: string;
  /** Context of one slot, in tokens. */
  readonly context: number;
}

export interface ExternalFacts {
  /** What the owner calls the engine. */
  readonly engine: string;
  readonly capabilities: readonly Capability[];
  /** Assumed where the engine does not tell. */
  readonly context: number;
}

/** Most models that one engine may list; more is a hub, not a server on this machine. */
const modelsMax = 100;

/** Pure: the models in an answer to `GET /v1/models`; undefined when it is no such answer. */
export function readModels(answer: unknown, facts: ExternalFacts): readonly ExternalModel[] | undefined {
  const list = field(answer, 'data');
  if (!Array.isArray(list)) return undefined;
  return list.slice(0, modelsMax).flatMap((entry: unknown) => {
    const id = field(entry, 'id');
    return typeof id === 'string' && id !== '' ? [readModel(id, entry, facts)] : [];
  });
}

function readModel(id: string, entry: unknown, {engine, capabilities, context: assumed}: ExternalFacts): ExternalModel {
  const meta = field(entry, 'meta');
  const name = nameOf(id);
  const trained = positive(field(meta, 'n_ctx_train'));
  const context = positive(field(entry, 'max_model_len')) ?? positive(field(meta, 'n_ctx')) ?? trained ?? assumed;
  const size = positive(field(meta, 'size'));
  const parameters = positive(field(meta, 'n_params'));
  return {
    id,
    context,
    stored: {
      key: `external:${engine}:${id}`,
      digest: digestOf({name, size, parameters, vocabulary: positive(field(meta, 'n_vocab'))}),
      names: [name],
      files: [`external:${engine}`],
      sizeBytes: size ?? 0,
      needBytes: size ?? 0,
      architecture: '',
      quant: text(field(meta, 'ftype')),
      parameters: parameters ?? 0,
      contextMax: trained ?? context,
      capabilities,
      demo: false,
      problem: undefined,
      hashed: undefined,
      modifiedWallMs: 0,
    },
  };
}

/** A llama-server without an alias names its file; its folder is nobody's business (R78). */
function nameOf(id: string): string {
  const isPath = /^(?:[/\\]|[A-Za-z]:\\)/u.test(id);
  return (isPath ? id.replace(/^.*[/\\]/u, '').replace(/\.gguf$/iu, '') : id).slice(0, nameLengthMax);
}

/**
 * Nobody can hash the files of another server. Its models are told apart by all that it says of them, so that two
 * servers with the same model share the work and two that differ are a conflict (law 6).
 */
function digestOf(identity: Readonly<Record<string, unknown>>): StoredModel['digest'] {
  const hash = createHash('sha256').update(`hearsay external model 1\n${JSON.stringify(identity)}`);
  return toDigest(`sha256:${hash.digest('hex')}`);
}

function field(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  return Object.entries(value).find(([key]) => key === name)?.[1];
}

function positive(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : undefined;
}

function text(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, 40) : '';
}
