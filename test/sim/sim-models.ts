import type {ModelStore, StoredModel} from '@hearsay/core';
import {model} from '../support/builders.ts';

/** A model with a name and a digest of one letter. */
export function stored(letter: string): StoredModel {
  const facts = model(letter, letter);
  return {...facts, key: letter, files: [`${letter}.gguf`], problem: undefined, hashed: undefined, modifiedWallMs: 0};
}

/** Models that never change. */
export function storeOf(models: readonly StoredModel[]): ModelStore {
  return {
    list: () => models,
    find: digest => models.find(one => one.digest === digest),
    onChange: () => ({[Symbol.dispose]: () => undefined}),
    [Symbol.asyncDispose]: async () => undefined,
  };
}
