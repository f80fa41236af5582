import {z} from 'zod';
import {isKnownNodeText, parsePolicy} from '@hearsay/core';
import type {Policy} from '@hearsay/core';
import {parseByteCount} from './byte-count.ts';
import {parseDuration} from './duration.ts';
import {isStoreText, storeNames} from './store-places.ts';

/** The kinds of values that settings have, as the file, the environment or a flag may write them. */

/** Of a node or a mesh. */
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

/** An array, or one text with commas. */
export function list(must: string): z.ZodType<readonly string[]> {
  const separated = z.string().transform(text => text.split(',').map(part => part.trim()));
  return z.union([z.array(z.string()), separated], {error: must}).transform(parts => parts.filter(part => part !== ''));
}

/** A list of `NAME=VALUE`. */
export function pairs(must: string): z.ZodType<Readonly<Record<string, string>>> {
  return list(must).transform((parts, context) => {
    const entries = parts.map(part => part.split('=', 2).map(side => side.trim()));
    if (entries.every(([left, right]) => left && right)) return Object.fromEntries(entries);
    context.addIssue({code: 'custom', message: must});
    return z.NEVER;
  });
}

/** Stores of other programs, each with or without a place. */
export function stores(): z.ZodType<readonly string[]> {
  const must = `a list of ${storeNames.join(', ')}, each with or without =FOLDER`;
  return list(must).refine(parts => parts.every(isStoreText), {error: must});
}

/** In bytes. */
export function byteCount(): z.ZodType<number> {
  const must = 'a size such as 16GiB, 16GB, or a number of bytes';
  return z.union([z.number(), z.string()], {error: must}).transform((value, context) => {
    const bytes = parseByteCount(value);
    if (bytes !== undefined) return bytes;
    context.addIssue({code: 'custom', message: must});
    return z.NEVER;
  });
}

/** In milliseconds. */
export function duration(): z.ZodType<number> {
  const must = 'a duration such as 5m, 300 (seconds), 0 or -1 (for ever)';
  return z.union([z.number(), z.string()], {error: must}).transform((value, context) => {
    const ms = parseDuration(value);
    if (ms !== undefined) return ms;
    context.addIssue({code: 'custom', message: must});
    return z.NEVER;
  });
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
