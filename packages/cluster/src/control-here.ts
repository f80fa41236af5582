import type {ControlAnswer, ControlRequest, EngineDetails, EngineHost, EngineSnapshot} from '@hearsay/core';
import type {Clock, ModelStore} from '@hearsay/core';

/** A stop waits so long for the process to go: the drain limit and the time from SIGTERM to SIGKILL. */
const stopMsMax = 15_000;

export interface ControlDeps {
  readonly engines: EngineHost;
  readonly models: ModelStore;
  readonly clock: Clock;
}

/** Does with an engine of this machine what somebody wishes, and tells how it is then. */
export async function controlHere(request: ControlRequest, deps: ControlDeps): Promise<ControlAnswer> {
  const {engines, models, clock} = deps;
  const model = models.find(request.digest);
  const running = engineOf(request, deps);
  const key = running?.key ?? model?.key;
  switch (request.kind) {
    case 'load': {
      if (model === undefined) return {kind: 'refused', message: 'this node does not have that model (any more)'};
      const {context, slots, keep} = request;
      const refusal = engines.load(model, {context, slots, keep});
      return refusal === undefined ? shown(request, deps) : {kind: 'refused', message: refusal.message};
    }
    case 'stop':
      if (running === undefined) return {kind: 'engine', engine: undefined};
      await stopped(running, engines.stop(running.key), clock);
      return {kind: 'engine', engine: {...detailsOf(engineOf(request, deps) ?? running, clock), state: endOf(request)}};
    case 'show':
      return shown(request, deps);
    case 'logs':
      if (key === undefined) return {kind: 'refused', message: 'this node does not have that model (any more)'};
      return {kind: 'logs', page: engines.logs(key, request.after)};
  }

  function endOf(of: ControlRequest): 'stopping' | 'stopped' {
    const state = engineOf(of, deps)?.state;
    return state === 'draining' || state === 'stopping' ? 'stopping' : 'stopped';
  }
}

/** Whoever stops a model that is still loading is told "stopping" at once (R109); else it is worth waiting for the end. */
async function stopped(engine: EngineSnapshot, gone: Promise<void>, clock: Clock): Promise<void> {
  if (engine.state === 'starting') return void gone.catch(() => undefined);
  const late = Promise.withResolvers<void>();
  using _limit = clock.after(stopMsMax, late.resolve);
  await Promise.race([gone, late.promise]);
}

function shown(request: ControlRequest, deps: ControlDeps): ControlAnswer {
  const engine = engineOf(request, deps);
  return {kind: 'engine', engine: engine && detailsOf(engine, deps.clock)};
}

/** The digest may have been proven since the engine was started, so the store's of today counts too. */
function engineOf({digest}: ControlRequest, {engines, models}: ControlDeps): EngineSnapshot | undefined {
  const key = models.find(digest)?.key;
  return engines.engines().find(engine => engine.key === key || engine.model.digest === digest);
}

function detailsOf(engine: EngineSnapshot, clock: Clock): EngineDetails {
  const {state, slots, busy, queued, context, loading, readySinceWallMs, unloadInMs, failure} = engine;
  const stays = unloadInMs === undefined || unloadInMs === Infinity;
  return {
    state,
    slots,
    busy,
    queued,
    context,
    loadedShare: loading?.share,
    remainingMs: loading?.remainingMs,
    readySeconds: readySinceWallMs === undefined ? undefined : (clock.wallMs() - readySinceWallMs) / 1000,
    untilSeconds: stays ? undefined : unloadInMs / 1000,
    failure,
  };
}
