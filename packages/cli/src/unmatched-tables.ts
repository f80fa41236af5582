import {isModelNamed} from '@hearsay/core';
import type {StoredModel} from '@hearsay/core';
import {suggest} from './suggest.ts';

/** Pure: a warning for each `[models."name"]` that no model of this machine goes by; it may be written wrong. */
export function unmatchedTables(names: readonly string[], models: readonly StoredModel[]): readonly string[] {
  const known = models.flatMap(model => model.names);
  return names
    .filter(name => !models.some(model => isModelNamed(model, name)))
    .map(name => {
      const meant = suggest(name, known);
      const hint = meant === undefined ? 'see: hearsay models' : `did you mean ${meant}?`;
      return `[models."${name}"] in the config is for no model of this machine (yet); ${hint}`;
    });
}
