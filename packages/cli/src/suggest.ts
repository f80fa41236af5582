import {editDistance} from '@hearsay/core';

/** The known word that was probably meant, or undefined when none is near enough to say so. */
export function suggest(word: string, known: readonly string[]): string | undefined {
  const editsMax = Math.max(1, Math.floor(word.length / 3));
  let best: {readonly word: string; readonly edits: number} | undefined;
  for (const candidate of known) {
    const edits = editDistance(word, candidate);
    if (edits <= editsMax && (best === undefined || edits < best.edits)) best = {word: candidate, edits};
  }
  return best?.word;
}
