/** What stores add to models, in inventories. */
import {z} from 'zod';
import {parseObject} from './json.ts';
import {nameLengthMax} from './limits.ts';
import type {ModelPreset} from './model.ts';
import {text} from './wire.ts';

/** Longest system prompt and longest parameters, as JSON, that others are told of: with more, models would not fit. */
const systemLengthMax = 4096;
const parametersLengthMax = 1024;

/** All presets of one model together, in characters. */
const presetsLengthMax = 16 * 1024;

export const wirePreset: z.ZodType<ModelPreset> = z
  .tuple([text(nameLengthMax), text(systemLengthMax), text(parametersLengthMax)])
  .rest(z.unknown())
  .transform(([name, system, parameters]) => ({
    name,
    template: undefined,
    system: system === '' ? undefined : system,
    parameters: parseObject(parameters) ?? {}, // the model runs without them
  }));

/** Those that may be told, as they travel. One that is too long is left out: half a system prompt is none. */
export function presetsTold(presets: readonly ModelPreset[]): readonly unknown[] {
  let restLength = presetsLengthMax;
  return presets.flatMap(({name, system = '', parameters}) => {
    const written = JSON.stringify(parameters);
    const length = system.length + written.length;
    const fits = system.length <= systemLengthMax && written.length <= parametersLengthMax && length <= restLength;
    const saysNothing = system === '' && written === '{}';
    if (!fits || saysNothing || name.length > nameLengthMax) return [];
    restLength -= length;
    return [[name, system, written]];
  });
}
