import {asFault, Fault, hostedChoices, hostedName, isOutOfNodes, reasonOf} from '@hearsay/core';
import type {ClientRequest, Decision, HostedChoice, HostedService, Ranked, RequestEvent} from '@hearsay/core';
import {dispatch} from './dispatch.ts';
import type {DispatchDeps, Started} from './dispatch.ts';

/** One request that may leave the mesh when no node can run it. */
export interface FallbackDeps extends Pick<DispatchDeps, 'clock' | 'patience'> {
  readonly services: readonly HostedService[];
  /** All names of what is asked for. */
  readonly names: readonly string[];
  readonly note: (event: RequestEvent) => void;
  /** How many attempts it has had so far. */
  readonly attempts: () => number;
  /** Starts it on a node of the mesh; gives it back when it would wait longer than the limit. */
  readonly local: (waitMsMax: number | undefined) => Promise<Started>;
}

/**
 * Starts the request in the mesh and, only when that has found nobody and its policy lets it leave, at a hosted
 * service. Nothing has reached the client by then, and no node runs it any more. Throws what the mesh said, with what
 * the services said behind it.
 */
export async function startWithFallback(
  request: ClientRequest,
  deps: FallbackDeps,
  signal: AbortSignal,
): Promise<Started> {
  const {policy, caller} = request;
  const choices = hostedChoices(deps.services, {names: deps.names, policy, caller});
  if (choices.length === 0) return deps.local(undefined);
  try {
    return await deps.local(Math.min(...choices.map(({service}) => service.waitMsMax)));
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof Fault) || !isOutOfNodes(error)) throw error;
    return leave(request, choices, {...deps, error}, signal);
  }
}

async function leave(
  request: ClientRequest,
  choices: readonly HostedChoice[],
  {error, note, attempts, local, clock, patience}: FallbackDeps & {readonly error: Fault},
  signal: AbortSignal,
): Promise<Started> {
  const services = choices.map(({service: {name}}) => hostedName(name));
  note({kind: 'leaving', reason: reasonOf(error), services});
  const accepted = {digests: choices.map(({digest}) => digest), exact: false};
  try {
    return await dispatch(
      request,
      accepted,
      hostedDeps(choices, {note, clock, patience, attemptsBefore: attempts()}),
      signal,
    );
  } catch (hostedError) {
    signal.throwIfAborted();
    // The mesh would only have been slow, and that is better than nobody.
    if (error.details['couldWait'] === true) return local(undefined);
    const hosted = asFault(hostedError, 'ENGINE_FAILED').message;
    throw new Fault(error.code, `${error.message}; ${hosted}`, {cause: error, details: {...error.details, hosted}});
  }
}

function hostedDeps(
  choices: readonly HostedChoice[],
  given: Pick<DispatchDeps, 'note' | 'clock' | 'patience' | 'attemptsBefore'>,
): DispatchDeps {
  const workers = new Map(choices.map(({service: {worker}}) => [worker.node, worker]));
  return {
    rank(_digests, {tried, busy}): Decision {
      const open = choices.filter(({service: {worker}}) => !tried.has(worker.node) && !busy.has(worker.node));
      const services = choices
        .map(choice => ranked(choice, open.indexOf(choice)))
        .toSorted((a, b) => (a.place ?? Infinity) - (b.place ?? Infinity));
      return {best: services.find(({place}) => place !== undefined), ranked: services};
    },
    worker(node) {
      const worker = workers.get(node);
      if (worker) return worker;
      throw new Fault('INTERNAL', 'a hosted service was asked that is none');
    },
    heard: () => undefined,
    failed: () => undefined,
    succeeded: () => undefined,
    engineFailed: () => undefined,
    ...given,
  };
}

/** A service where nodes stand otherwise; only its name and its place count. */
function ranked({service: {name, worker}, digest}: HostedChoice, index: number): Ranked {
  const facts = {self: false, preferred: false, state: 'ready', digest} as const;
  const place = index < 0 ? undefined : index;
  return {
    ...facts,
    node: worker.node,
    name: hostedName(name),
    exclusion: place === undefined ? 'tried' : undefined,
    freeSlots: 0,
    queued: 0,
    waitMs: 0,
    ...nothingKnown,
    place,
    reason: 'no node of the mesh could run it',
  };
}

/** What is measured of nodes, of a service nobody measures. */
const nothingKnown = {
  ageMs: 0,
  slots: 0,
  busy: 0,
  running: 0,
  ownOffers: 0,
  sizeBytes: 0,
  contextTokens: undefined,
  roomBytes: 0,
  hasRoom: true,
  evictSeconds: 0,
  roundTripMs: undefined,
  relayed: false,
  failures: 0,
  learned: undefined,
  likely: undefined,
  hitBytes: 0,
  cost: undefined,
} as const;
