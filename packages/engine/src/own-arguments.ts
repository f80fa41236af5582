import {Fault, isCacheType} from '@hearsay/core';
import type {CacheType} from '@hearsay/core';

/**
 * Arguments that hearsay gives by itself: another value would open a door, run another model, or make what it knows of
 * the memory untrue. Each with what to do instead.
 */
const refused: Readonly<Record<string, string>> = Object.fromEntries(
  [
    {
      words: ['-m', '--model', '-a', '--alias', '--models-dir', '--models-preset'],
      instead: 'ask for the model by name',
    },
    {
      words: ['-mu', '--model-url', '-hf', '-hfr', '--hf-repo', '-hff', '--hf-file', '-dr', '--docker-repo'],
      instead: 'put the file into a folder of models',
    },
    {
      words: ['--host', '--port', '--reuse-port', '--api-prefix'],
      instead: 'hearsay alone talks to it; see gateway.host',
    },
    {words: ['--api-key', '--api-key-file', '--ssl-key-file', '--ssl-cert-file'], instead: 'hearsay chooses a key'},
    {words: ['--ui', '--webui', '--path', '--cors-origins', '-ag', '--agent', '--tools'], instead: 'leave it out'},
    {words: ['-c', '--ctx-size'], instead: 'set the context: engine.context, or context of one model'},
    {words: ['-np', '--parallel'], instead: 'set the slots: engine.slots, or slots of one model'},
    {words: ['-kvu', '--kv-unified', '--kv-unified-per-slot'], instead: 'every slot has a cache of its own'},
    {words: ['-cram', '--cache-ram'], instead: 'leave it out; that memory would not be counted'},
    {words: ['--sleep-idle-seconds'], instead: 'set engine.keep_alive'},
    {words: ['--list-devices', '--version', '-h', '--help', '-cl', '--cache-list'], instead: 'leave it out'},
  ].flatMap(({words, instead}) => words.map(word => [word, instead])),
);

/** Throws BAD_CONFIG when the owner's own arguments hold one that must not be there. */
export function checkOwnArguments(own: readonly string[], where: string): void {
  for (const argument of own) {
    const [word = ''] = argument.split('=');
    const instead = refused[word];
    if (instead !== undefined) {
      throw new Fault('BAD_CONFIG', `${where} must not have ${word}: ${instead}`, {details: {argument: word}});
    }
  }
}

/** How the cache will be kept, as far as the arguments tell; what llama-server does not know it will refuse itself. */
export function cacheTypesOf(own: readonly string[]): {readonly keyType: CacheType; readonly valueType: CacheType} {
  return {
    keyType: cacheTypeAt(own, ['-ctk', '--cache-type-k']),
    valueType: cacheTypeAt(own, ['-ctv', '--cache-type-v']),
  };
}

/** How many tokens are read in one step. */
export function stepTokensOf(own: readonly string[]): number {
  return Math.min(numberAt(own, ['-b', '--batch-size'], 2048), numberAt(own, ['-ub', '--ubatch-size'], 512));
}

/** As llama-server has it unless it is said. */
function numberAt(own: readonly string[], words: readonly string[], otherwise: number): number {
  const value = Number(own[own.findLastIndex(word => words.includes(word)) + 1]);
  return own.some(word => words.includes(word)) && value > 0 ? value : otherwise;
}

function cacheTypeAt(own: readonly string[], words: readonly string[]): CacheType {
  const value = own[own.findLastIndex(word => words.includes(word)) + 1] ?? '';
  return own.some(word => words.includes(word)) && isCacheType(value) ? value : 'f16';
}

/** Without the layout that is faster on a CPU there is no second copy of the weights. */
export function copiesWeights(own: readonly string[]): boolean {
  return !own.includes('-nr') && !own.includes('--no-repack');
}
