import {automatic, describeError, Fault, formatPolicy, newRequestId, resolveModel, toNamedModel} from '@hearsay/core';
import type {
  Answer,
  ClientRequest,
  Cluster,
  ControlCommand,
  ControlOutcome,
  EngineHost,
  Environment,
  Mesh,
  ModelStore,
  NamedModel,
  NodeId,
} from '@hearsay/core';
import type {RequestId, Resolution} from '@hearsay/core';
import {Affinity} from './affinity.ts';
import {startAnnouncer} from './announcer.ts';
import {chooseNode} from './choose-node.ts';
import type {ChooserConfig} from './choose-node.ts';
import {controlHere} from './control-here.ts';
import {controlMesh} from './control-mesh.ts';
import {dispatch} from './dispatch.ts';
import {LoadClaims} from './load-claims.ts';
import {localWorker} from './local-worker.ts';
import {reportEngines, reportModels, reportNodes} from './reports.ts';
import {servePeers} from './serve-peer.ts';
import type {ServePeer} from './serve-peer.ts';
import {startExperience} from './start-experience.ts';
import {startPreload} from './start-preload.ts';
import {startSketching} from './start-sketching.ts';
import {startViewKeeper} from './view-keeper.ts';

export interface ClusterConfig extends ChooserConfig {
  /** What people call this node. */
  readonly nodeName: string;
  readonly version: string;
  /** Greater than at every start before; kept beside the node's key. */
  readonly boot: number;
  /** Most context that a slot gets here, in tokens; undefined: what the memory allows. */
  readonly contextMax: number | undefined;
  /** Where the measured speeds of this node's models are kept; undefined: they are forgotten at the end. */
  readonly experienceFile: string | undefined;
  /** Models that this node loads at its start and keeps. */
  readonly preload?: readonly string[];
  /** Whether other nodes may load and stop models here and read the logs of engines; default true. */
  readonly takesWishes?: boolean;
}

export interface ClusterDeps extends Environment {
  readonly mesh: Mesh;
  readonly engines: EngineHost;
  readonly models: ModelStore;
}

/** After the start an unknown name may be known in a moment: wait this long for peers before saying 404 (R112). */
const settlingMs = 3000;

/**
 * Joins the mesh as one node: announces it, listens to the others, serves them, and dispatches what its gateway gets.
 */
export async function joinCluster(config: ClusterConfig, deps: ClusterDeps): Promise<Cluster> {
  const {clock, engines, log, mesh, models, random} = deps;
  const keeper = startViewKeeper(deps);
  const experience = await startExperience(config.experienceFile, deps);
  const announcer = startAnnouncer(config, {...deps, experience}, () => keeper.view().nodes.size + 1);
  const affinity = new Affinity();
  const claims = new LoadClaims({...deps, keeper, fresh: announcer.fresh});
  const local = claims.around(localWorker(mesh.self, {models, engines, experience, affinity}));
  const sketching = startSketching(config, {...deps, affinity});
  const startedAtMs = clock.monotonicMs();
  let inFlight = 0;
  let catalogue: {version: number; inventory: Uint8Array; models: readonly NamedModel[]} | undefined;

  await announcer.fresh(); // a peer that connects at once must get a record of this node
  await mesh.serve({
    judge: keeper.judge,
    newest: () => [...[announcer.last()].filter(own => own !== undefined), ...keeper.held()],
    inventory: announcer.inventory,
    ...(config.takesWishes === false ? {} : {control: async request => controlHere(request, deps)}),
    offer: config.role === 'use' ? refuseAll : servePeers(local, announcer.fresh, claims),
    nameOf: node => keeper.view().nodes.get(node)?.beat.name,
    linkChanged(node, link) {
      keeper.linkChanged(node, link);
      if (link?.admitted) announcer.touch();
    },
  });

  const reportDeps = {keeper, announcer, deps};
  const choosing = {mesh, clock, keeper, announcer, affinity, local};

  /** Every name there is, put together anew only when something of it has changed: each request asks for it. */
  function known(): readonly NamedModel[] {
    const version = keeper.version();
    const inventory = announcer.inventory();
    if (catalogue?.version !== version || catalogue.inventory !== inventory) {
      catalogue = {version, inventory, models: namedModels(reportModels(reportDeps, true))};
    }
    return catalogue.models;
  }

  async function resolve(asked: string, signal: AbortSignal): Promise<Resolution> {
    for (;;) {
      const resolution = resolveModel(asked, known());
      const settlesInMs = startedAtMs + settlingMs - clock.monotonicMs();
      if (resolution.kind === 'found' || settlesInMs <= 0) return resolution;
      await keeper.changed(AbortSignal.any([signal, AbortSignal.timeout(Math.ceil(settlesInMs))]));
      signal.throwIfAborted();
    }
  }

  async function run(request: ClientRequest, signal: AbortSignal): Promise<Answer> {
    const resolution = await resolve(request.model, signal);
    if (resolution.kind !== 'found') throw notFound(request.model, resolution);
    const choice = chooseNode(request, config, choosing);
    const started = await dispatch(request, resolution.digests, choice, signal);
    choice.started(started);
    const {node, attempt, digest, response, body} = started;
    body.onEnd = error => {
      inFlight -= 1;
      log('debug', 'request ended', {request: request.id, node: node.name, attempt, ...outcome(error)});
    };
    const {status, contentType} = response;
    const reason =
      request.policy.placement.kind === 'prefer' && !node.preferred
        ? `preference not met: ${node.reason}`
        : node.reason;
    const facts = {attempts: attempt, policy: formatPolicy(request.policy), reason, model: resolution.name};
    return {run: {...facts, node: node.node, nodeName: node.name, digest}, status, contentType, body};
  }

  async function control(command: ControlCommand, signal: AbortSignal): Promise<readonly ControlOutcome[]> {
    const resolution = await resolve(command.model, signal);
    if (resolution.kind !== 'found') throw notFound(command.model, resolution);
    const any = anyRequest(command.model, newRequestId(random));
    const choice = chooseNode(any, config, choosing);
    const nobody = {tried: new Set<NodeId>(), busy: new Set<NodeId>()};
    return controlMesh(
      command,
      resolution.digests,
      {...deps, rank: digests => choice.rank(any, digests, nobody)},
      signal,
    );
  }
  const preload = startPreload(config.preload ?? [], deps);

  return {
    async dispatch(request, signal) {
      inFlight += 1;
      try {
        return await run(request, signal);
      } catch (error) {
        inFlight -= 1;
        log('debug', 'request failed', {request: request.id, ...outcome(error)});
        if (signal.aborted) throw new Fault('CANCELLED', 'the client went away', {cause: error});
        throw error;
      }
    },
    models: () => reportModels(reportDeps, false),
    engines: () => reportEngines(reportDeps),
    nodes: () => reportNodes(reportDeps),
    inFlight: () => inFlight,
    async stop(model) {
      const outcomes = await control({kind: 'stop', model, node: undefined}, new AbortController().signal);
      return outcomes.some(({answer}) => answer.kind === 'engine' && answer.engine !== undefined);
    },
    control,
    async [Symbol.asyncDispose]() {
      preload[Symbol.dispose]();
      await announcer[Symbol.asyncDispose]();
      await sketching[Symbol.asyncDispose]();
      await experience[Symbol.asyncDispose]();
      keeper[Symbol.dispose]();
    },
  };
}

const refuseAll: ServePeer = async () => ({
  kind: 'refused',
  code: 'policy',
  message: 'this node runs no requests of others (mesh.role)',
});

/** A request that any node with the model may run, to find the one that would run it best. */
function anyRequest(model: string, id: RequestId): ClientRequest {
  const body = new Uint8Array();
  return {id, model, endpoint: '/v1/completions', needs: [], policy: automatic, body, traceparent: undefined};
}

function namedModels(reports: ReturnType<typeof reportModels>): readonly NamedModel[] {
  return reports.filter(({problem}) => problem === undefined).map(toNamedModel);
}

function notFound(asked: string, resolution: Exclude<Resolution, {kind: 'found'}>): Fault {
  if (resolution.kind === 'unnamed') {
    const known = resolution.known.length > 0 ? `one of: ${resolution.known.join(', ')}` : 'but no node has any yet';
    return new Fault('BAD_REQUEST', `the request names no model; name ${known}`, {details: {param: 'model'}});
  }
  const hint = resolution.close.length > 0 ? `did you mean ${resolution.close.join(' or ')}?` : 'see `hearsay models`';
  return new Fault('MODEL_NOT_FOUND', `model '${asked}' not found on any node; ${hint}`, {
    details: {param: 'model', close: resolution.close},
  });
}

function outcome(error: unknown): {outcome: string; error?: string} {
  if (error === undefined) return {outcome: 'finished'};
  const code = error instanceof Fault ? error.code : 'INTERNAL';
  if (code === 'CANCELLED' || (error instanceof Error && error.name === 'AbortError')) return {outcome: 'cancelled'};
  return {outcome: code === 'INTERRUPTED' ? 'interrupted' : 'failed', error: describeError(error)};
}
