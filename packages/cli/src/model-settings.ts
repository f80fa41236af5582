import {z} from 'zod';
import {Fault, nameLengthMax} from '@hearsay/core';
import {suggest} from './suggest.ts';

/** What the owner wants for one model: a table `[models."name"]` of the config file. */
export interface ModelWishes {
  readonly context?: number | undefined;
  readonly slots?: number | undefined;
  readonly keep?: boolean | undefined;
  readonly extraArguments?: readonly string[] | undefined;
}

const table = z
  .strictObject({
    context: z.int({error: 'a number of tokens'}).min(128).max(10_000_000),
    slots: z.int({error: 'a number of slots'}).min(1).max(256),
    keep: z.boolean({error: 'true or false'}),
    extra_arguments: z.array(z.string(), {error: 'a list of arguments'}),
  })
  .partial()
  .transform(({extra_arguments: extraArguments, ...rest}): ModelWishes => ({...rest, extraArguments}));

const modelKeys = ['context', 'slots', 'keep', 'extra_arguments'];

/** Parses one such table; throws BAD_CONFIG that names it. */
export function parseModelWishes(name: string, value: unknown, where: string): ModelWishes {
  if (name.length > nameLengthMax) throw new Fault('BAD_CONFIG', `${where}: a model's name is too long`);
  const parsed = table.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const what = issue?.code === 'unrecognized_keys' ? unknownKey(issue.keys) : describe(issue?.path, issue?.message);
  throw new Fault('BAD_CONFIG', `[models."${name}"] ${where}: ${what}`, {details: {model: name}});
}

function unknownKey(keys: readonly string[]): string {
  const [first = ''] = keys;
  const meant = suggest(first, modelKeys);
  const there = `may have ${modelKeys.join(', ')}; to load models at the start: engine.preload`;
  return `unknown key \`${keys.join('`, `')}\`; ${meant === undefined ? 'it' : `did you mean \`${meant}\`? It`} ${there}`;
}

function describe(path: readonly PropertyKey[] = [], message = 'something else'): string {
  return `${path.map(String).join('.')} must be ${message}`;
}
