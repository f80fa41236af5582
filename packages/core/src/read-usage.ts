import type {Usage} from './journal-port.ts';

/**
 * Pure: what llama-server counted, from the last kilobytes of its answer; undefined when there is nothing. Reads
 * numbers only, so that nothing of the answer can get anywhere. The last mention counts: an answer may talk about
 * usage too, but llama-server's own comes after it.
 */
export function readUsage(tail: string): Usage | undefined {
  const timings = lastObject(tail, 'timings');
  const usage = lastObject(tail, 'usage');
  if (timings === undefined && usage === undefined) return undefined;
  const cached = numberIn(timings, 'cache_n') ?? numberIn(usage, 'cached_tokens');
  const evaluated = numberIn(timings, 'prompt_n');
  const read = evaluated === undefined ? numberIn(usage, 'input_tokens') : evaluated + (cached ?? 0);
  return {
    promptTokens: numberIn(usage, 'prompt_tokens') ?? read,
    cachedTokens: cached,
    outputTokens:
      numberIn(usage, 'completion_tokens') ?? numberIn(timings, 'predicted_n') ?? numberIn(usage, 'output_tokens'),
    prefillTokensPerSecond: numberIn(timings, 'prompt_per_second'),
    decodeTokensPerSecond: numberIn(timings, 'predicted_per_second'),
  };
}

/** Both objects are shorter than this. */
const objectLengthMax = 500;

function lastObject(text: string, name: string): string | undefined {
  const start = text.lastIndexOf(`"${name}":{`);
  return start < 0 ? undefined : text.slice(start, start + objectLengthMax);
}

function numberIn(text: string | undefined, name: string): number | undefined {
  const found = new RegExp(`"${name}":\\s*(-?\\d+(?:\\.\\d+)?(?:e[+-]?\\d+)?)`, 'u').exec(text ?? '')?.[1];
  return found === undefined ? undefined : Number(found);
}
