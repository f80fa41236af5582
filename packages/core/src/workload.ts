import {matchesPattern} from './caller.ts';
import type {Digest} from './ids.ts';
import type {Capability, ModelFacts} from './model.ts';
import type {Policy} from './policy.ts';
import {compareModels, isModelNamed} from './resolve-model.ts';
import type {NamedModel} from './resolve-model.ts';

/** A stable name that applications ask for instead of a model or a machine (S62, S64). */
export interface Workload {
  readonly name: string;
  /** What may run it, best first: names, digests or their first twelve digits, or names with `*` for any characters. */
  readonly models: readonly string[];
  /** Of these quantizations only; empty: any. */
  readonly quants: readonly string[];
  readonly needs: readonly Capability[];
  /** Least context that the model was made for, in tokens. */
  readonly contextMin: number;
  readonly policy: Policy | undefined;
  /** Put into the body where the request does not say otherwise. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** Keys that may ask for it; undefined: everybody. */
  readonly keys: readonly string[] | undefined;
  /**
   * A request that has begun on one model is only ever moved to the same bytes (S65); false: to any that is accepted.
   */
  readonly exact: boolean;
}

/** A model somewhere in the mesh, as far as choosing one by name or workload needs it. */
export interface HeldModel extends NamedModel, Pick<ModelFacts, 'quant' | 'capabilities' | 'contextMax'> {
  readonly nodes: readonly {readonly id: string; readonly name: string; readonly local: boolean}[];
}

/** Pure: every known model that the workload accepts, best first. */
export function acceptedDigests(workload: Workload, models: readonly HeldModel[]): readonly Digest[] {
  const fitting = models.filter(model => fits(workload, model));
  const digests = workload.models.flatMap(accepted =>
    fitting
      .filter(model => isAccepted(accepted, model))
      .toSorted(compareModels)
      .map(({digest}) => digest),
  );
  return [...new Set(digests)];
}

function fits({quants, needs, contextMin}: Workload, {quant, capabilities, contextMax}: HeldModel): boolean {
  const isQuant = quants.length === 0 || quants.some(wanted => wanted.toLowerCase() === quant.toLowerCase());
  return isQuant && contextMax >= contextMin && needs.every(need => capabilities.includes(need));
}

function isAccepted(accepted: string, model: HeldModel): boolean {
  if (!accepted.includes('*')) return isModelNamed(model, accepted);
  return model.names.some(name => matchesPattern(accepted, name));
}
