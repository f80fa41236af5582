import {z} from 'zod';
import type {Policy} from '@hearsay/core';
import {isKnownNodeText, parsePolicy} from '@hearsay/core';
import {parseDuration} from './duration.ts';

/** What the value of a setting may be, as TOML gives it or as text; the message says what it must be. */

export function name(): z.ZodType<string> {
  const must = 'a name of at most 200 characters without comma and equals sign';
  return z.string({error: must}).refine(isKnownNodeText, {error: must});
}

export function path(): z.ZodType<string> {
  return z.string({error: 'a path'}).min(1, {error: 'a path'});
}

export function wholeNumber(min: number, max: number): z.ZodType<number> {
  const must = `a whole number from ${min} to ${max}`;
  const digits = z.string().regex(/^\d+$/u).transform(Number);
  return z.union([z.int(), digits], {error: must}).refine(value => value >= min && value <= max, {error: must});
}

export function yesOrNo(): z.ZodType<boolean> {
  const word = z.enum(['true', 'false', 'yes', 'no', '1', '0']).transform(text => ['true', 'yes', '1'].includes(text));
  return z.union([z.boolean(), word], {error: 'true or false'});
}

export function list(must: string): z.ZodType<string[]> {
  const separated = z.string().transform(text => text.split(',').map(part => part.trim()));
  return z.union([z.array(z.string()), separated], {error: must}).transform(parts => parts.filter(part => part !== ''));
}

export function policy(): z.ZodType<Policy> {
  const must = 'auto, prefer=NODE,… or pin=NODE,…, with ;exclude=NODE,… behind it or alone';
  return z.string({error: must}).transform((text, context): Policy => {
    try {
      return parsePolicy(text);
    } catch {
      context.addIssue({code: 'custom', message: must});
      return z.NEVER;
    }
  });
}

export function duration(): z.ZodType<number> {
  const must = 'a duration such as 5m, 300 (seconds), 0 or -1 (for ever)';
  return z.union([z.number(), z.string()], {error: must}).transform((value, context) => {
    const ms = parseDuration(value);
    if (ms !== undefined) return ms;
    context.addIssue({code: 'custom', message: must});
    return z.NEVER;
  });
}
