import type {Capability} from '@hearsay/core';
import {capabilities, nameLengthMax} from '@hearsay/core';
import {z} from 'zod';

/** An OpenAI-compatible server that somebody else runs, as the config names it. */
export interface ExternalServer {
  readonly name: string;
  readonly url: string;
  /** The environment variable that holds its key. */
  readonly keyVariable: string | undefined;
  readonly slots: number;
  readonly context: number;
  readonly capabilities: readonly Capability[];
}

const must =
  'NAME=URL, or tables [[engines.external]] with name, url and perhaps key_env, slots, context, capabilities';

const url = z.string().refine(text => /^https?:\/\/[^/?#@\s]+(?:\/[^?#\s]*)?$/u.test(text) && URL.canParse(text));

const server = z
  .strictObject({
    name: z.string().min(1).max(nameLengthMax),
    url,
    key_env: z.string().min(1).optional(),
    slots: z.int().min(1).max(256).default(4),
    context: z.int().min(1).default(8192),
    capabilities: z.array(z.enum(capabilities)).default(['chat', 'completion', 'tools']),
  })
  .transform(({key_env: keyVariable, ...rest}): ExternalServer => ({...rest, keyVariable}));

const pairs = z.string().transform(text =>
  text
    .split(',')
    .map(part => part.trim())
    .filter(part => part !== '')
    .map(part => ({name: part.slice(0, part.indexOf('=')), url: part.slice(part.indexOf('=') + 1)})),
);

/** One table, several, or a text with commas for the environment. */
export function externalServers(): z.ZodType<readonly ExternalServer[]> {
  const tables = z.union([z.array(z.unknown()), pairs, z.unknown().transform(table => [table])]);
  return tables.transform((given, context) => {
    const parsed = z.array(server).safeParse(given);
    if (parsed.success && new Set(parsed.data.map(({name}) => name)).size === parsed.data.length) return parsed.data;
    context.addIssue({code: 'custom', message: must});
    return z.NEVER;
  });
}
