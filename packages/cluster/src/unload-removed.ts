import type {Clock, EngineHost, Log, ModelStore} from '@hearsay/core';

interface RemovalDeps {
  readonly engines: Pick<EngineHost, 'engines' | 'stop'>;
  readonly models: Pick<ModelStore, 'list' | 'onChange'>;
  readonly clock: Clock;
  readonly log: Log;
}

/** A file that is replaced, or a drive that is away for a moment, is back within this time. */
const graceMs = 30_000;

/** Between two looks while something is gone. */
const lookMs = 5_000;

/**
 * Ends the engines of models that are no longer on this machine: nobody can ask for them or stop them by name, and
 * until then the disk does not get its space back. Whoever uses one may end first.
 */
export function unloadRemoved({engines, models, clock, log}: RemovalDeps): Disposable {
  const goneSinceMs = new Map<string, number>();
  let timer: Disposable | undefined;

  function look(): void {
    timer?.[Symbol.dispose]();
    timer = undefined;
    const listed = new Set(models.list().map(({key}) => key));
    const gone = engines.engines().filter(({key}) => !listed.has(key));
    for (const key of goneSinceMs.keys()) if (!gone.some(engine => engine.key === key)) goneSinceMs.delete(key);
    const nowMs = clock.monotonicMs();
    for (const {key, model, busy, queued} of gone) {
      const sinceMs = goneSinceMs.get(key) ?? nowMs;
      goneSinceMs.set(key, sinceMs);
      if (nowMs - sinceMs < graceMs || busy + queued > 0) continue;
      log('info', 'a model is unloaded because its files are gone', {model: model.names[0]});
      engines.stop(key).catch((error: unknown) => log('warn', 'a model could not be unloaded', {key, error}));
    }
    if (gone.length > 0) timer = clock.after(lookMs, look);
  }

  const watch = models.onChange(look);
  return {
    [Symbol.dispose]: () => {
      watch[Symbol.dispose]();
      timer?.[Symbol.dispose]();
    },
  };
}
