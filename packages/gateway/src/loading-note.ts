import type {EngineReport, Place} from '@hearsay/core';

/** Pure: what a client may hear that waits for its turn; undefined when it waits for nobody. */
export function waitingNote(place: Place | undefined): string | undefined {
  if (place === undefined) return undefined;
  const {position, waitMs} = place;
  return `waiting as number ${position}, about ${Math.ceil(waitMs / 1000)} s`;
}

/** Pure: what a client that waits for this model may hear meanwhile; undefined when nothing loads it. */
export function loadingNote(model: string, engines: readonly EngineReport[]): string | undefined {
  const wanted = model.toLowerCase();
  const loading = engines.filter(({state}) => state === 'loading');
  const own = loading.find(({name, digest}) => name.toLowerCase() === wanted || digest === model);
  // A request may name it otherwise: by an alias, a tag or a node.
  const engine = own ?? loading.find(({name}) => wanted.startsWith(name.toLowerCase()));
  if (engine === undefined) return undefined;
  const {loadedShare = 0, loadingSecondsLeft = 0, nodeName} = engine;
  const percent = loadedShare > 0 ? ` ${Math.floor(loadedShare * 100)}%` : '';
  const left = loadingSecondsLeft >= 1 ? `, about ${Math.ceil(loadingSecondsLeft)} s left` : '';
  return `loading${percent} on ${nodeName}${left}`;
}
