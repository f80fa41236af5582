import {Fault, isKnownNodeText} from '@hearsay/core';
import type {HostedConfig} from '@hearsay/engine';
import {z} from 'zod';
import {duration} from './setting-kinds.ts';
import type {Variables} from './system.ts';

/** Hosted services of the config file: `[hosted.NAME]`, one table each. */
export interface HostedSettings extends Omit<HostedConfig, 'apiKey'> {
  /** The environment variable that holds the key. */
  readonly keyVariable: string | undefined;
}

/** More would be no list for people any more. */
const servicesMax = 20;

const url = z
  .string({error: 'an https:// URL'})
  .refine(isSafeUrl, {error: 'an https:// URL; http:// only on loopback'});
const names = z.record(z.string(), z.string().min(1), {error: 'a table such as {"qwen3:8b" = "their-model"}'});

const table = z.strictObject({
  url,
  key_env: z.string().min(1).optional(),
  models: names.refine(given => Object.keys(given).length > 0, {error: 'a table with at least one model'}),
  tokens_per_month: z.int({error: 'a number of tokens; every service needs a limit'}).min(1),
  tokens_per_request: z.int({error: 'a number of tokens'}).min(1).default(16_384),
  limit_field: z
    .enum(['max_tokens', 'max_completion_tokens'], {error: 'max_tokens or max_completion_tokens'})
    .default('max_tokens'),
  wait: duration().default(30_000),
});

/** Throws BAD_CONFIG that names the table, the key and what it must be. */
export function parseHosted(value: unknown, file: string): readonly HostedSettings[] {
  if (value === undefined) return [];
  const tables = z.record(z.string(), z.unknown()).safeParse(value);
  if (!tables.success) throw wrong('hosted', 'tables such as [hosted.acme]', file);
  const entries = Object.entries(tables.data);
  if (entries.length > servicesMax) throw wrong('hosted', `at most ${servicesMax} tables`, file);
  return entries.map(([name, raw]) => parseService(name, raw, file));
}

/** The key itself stands in no file. */
export function withHostedKey({keyVariable, ...service}: HostedSettings, variables: Variables): HostedConfig {
  const apiKey = keyVariable === undefined ? undefined : variables[keyVariable];
  if (keyVariable === undefined || apiKey) return {...service, apiKey};
  throw new Fault('BAD_CONFIG', `the hosted service ${service.name} needs its key in the variable ${keyVariable}`);
}

function parseService(name: string, raw: unknown, file: string): HostedSettings {
  const where = `hosted.${name}`;
  if (!isKnownNodeText(name)) {
    throw wrong(where, 'a name of at most 200 characters without comma and equals sign', file);
  }
  const parsed = table.safeParse(raw);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    if (issue?.code === 'unrecognized_keys') {
      const known = Object.keys(table.shape).join(', ');
      throw new Fault('BAD_CONFIG', `${file}: unknown key \`${where}.${issue.keys[0]}\`; there are ${known}`);
    }
    throw wrong([where, ...(issue?.path ?? [])].join('.'), issue?.message ?? 'something else', file);
  }
  const {url: address, key_env: keyVariable, models, wait, ...limits} = parsed.data;
  return {
    name,
    url: address,
    keyVariable,
    models,
    tokensPerMonth: limits.tokens_per_month,
    tokensPerRequest: limits.tokens_per_request,
    limitField: limits.limit_field,
    waitMsMax: wait,
  };
}

/** Keys and prompts go over the internet only with TLS. */
function isSafeUrl(text: string): boolean {
  if (!/^https?:\/\/[^/?#@\s]+(?:\/[^?#\s]*)?$/u.test(text) || !URL.canParse(text)) return false;
  const {protocol, hostname} = new URL(text);
  return protocol === 'https:' || hostname === 'localhost' || hostname === '[::1]' || hostname.startsWith('127.');
}

function wrong(key: string, must: string, file: string): Fault {
  return new Fault('BAD_CONFIG', `${key} in ${file} must be ${must}`, {details: {file, key}});
}
