import {capabilities, describeError, Fault, isKnownNodeText, parsePolicy} from '@hearsay/core';
import type {Policy, Workload} from '@hearsay/core';
import {z} from 'zod';

/** Workloads of the config file: `[workloads.NAME]`, one table each. */

/** More would be no list for people any more. */
const workloadsMax = 200;

const texts = (must: string) => z.array(z.string().min(1), {error: must});

const capability = z.enum(capabilities, {error: `a list of ${capabilities.join(', ')}`});

const policy = z.string({error: 'a policy'}).transform((text, context): Policy => {
  try {
    return parsePolicy(text);
  } catch (error) {
    context.addIssue({code: 'custom', message: `a policy; ${describeError(error)}`});
    return z.NEVER;
  }
});

const table = z.strictObject({
  models: texts('a list of names, digests or patterns').min(1, {error: 'a list of at least one model'}),
  quants: texts('a list of quantizations').default([]),
  needs: z.array(capability, {error: 'a list of capabilities'}).default([]),
  context: z.int({error: 'a number of tokens'}).min(0).default(0),
  policy: policy.optional(),
  parameters: z.record(z.string(), z.unknown(), {error: 'a table of parameters'}).default({}),
  keys: texts('a list of names of keys').optional(),
  reassign: z.enum(['exact', 'accepted'], {error: 'exact or accepted'}).default('exact'),
});

/** Parameters that hearsay itself sets or that name what the workload stands for. */
const reserved = ['model', 'messages', 'prompt', 'stream', 'provider'];

/** Throws BAD_CONFIG that names the table, the key and what it must be. */
export function parseWorkloads(value: unknown, file: string): readonly Workload[] {
  if (value === undefined) return [];
  const tables = z.record(z.string(), z.unknown()).safeParse(value);
  if (!tables.success) throw wrong('workloads', 'tables such as [workloads.summarise]', file);
  const entries = Object.entries(tables.data);
  if (entries.length > workloadsMax) throw wrong('workloads', `at most ${workloadsMax} tables`, file);
  return entries.map(([name, raw]) => parseWorkload(name, raw, file));
}

function parseWorkload(name: string, raw: unknown, file: string): Workload {
  const where = `workloads.${name}`;
  if (!isKnownNodeText(name))
    throw wrong(where, 'a name of at most 200 characters without comma and equals sign', file);
  const parsed = table.safeParse(raw);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    if (issue?.code === 'unrecognized_keys') {
      const known = Object.keys(table.shape).join(', ');
      throw new Fault('BAD_CONFIG', `${file}: unknown key \`${where}.${issue.keys[0]}\`; there are ${known}`);
    }
    throw wrong([where, ...(issue?.path ?? [])].join('.'), issue?.message ?? 'something else', file);
  }
  const {models, quants, needs, context, parameters, keys, reassign} = parsed.data;
  const taken = reserved.find(key => Object.hasOwn(parameters, key));
  if (taken !== undefined) throw wrong(`${where}.parameters`, `without ${taken}, which is the request's own`, file);
  return {
    name,
    models,
    quants,
    needs,
    contextMin: context,
    policy: parsed.data.policy,
    parameters,
    keys,
    exact: reassign === 'exact',
  };
}

function wrong(key: string, must: string, file: string): Fault {
  return new Fault('BAD_CONFIG', `${key} in ${file} must be ${must}`, {details: {file, key}});
}
