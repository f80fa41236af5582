import {
  automatic,
  decide,
  describeError,
  Fault,
  formatPolicy,
  newRequestId,
  outcomeOf,
  readUsage,
  resolveModel,
  whyReport,
} from '@hearsay/core';
import type {
  Answer,
  ClientRequest,
  Cluster,
  EngineHost,
  Environment,
  Journal,
  Mesh,
  ModelStore,
  NamedModel,
} from '@hearsay/core';
import type {DecisionFacts, Digest, NodeId, RequestEvent, Resolution} from '@hearsay/core';
import {startAnnouncer} from './announcer.ts';
import {dispatch} from './dispatch.ts';
import type {DispatchDeps} from './dispatch.ts';
import {journalServing} from './journal-serving.ts';
import {localWorker} from './local-worker.ts';
import {reportEngines, reportModels, reportNodes} from './reports.ts';
import {servePeers} from './serve-peer.ts';
import {startViewKeeper} from './view-keeper.ts';

export interface ClusterConfig {
  /** What people call this node. */
  readonly nodeName: string;
  readonly version: string;
  /** Greater than at every start before; kept beside the node's key. */
  readonly boot: number;
}

export interface ClusterDeps extends Environment {
  readonly mesh: Mesh;
  readonly engines: EngineHost;
  readonly models: ModelStore;
  readonly journal: Journal;
}

/** After the start an unknown name may be known in a moment: wait this long for peers before saying 404 (R112). */
const settlingMs = 3000;

/**
 * Joins the mesh as one node: announces it, listens to the others, serves them, and dispatches what its gateway gets.
 */
export async function joinCluster(config: ClusterConfig, deps: ClusterDeps): Promise<Cluster> {
  const {clock, engines, journal, log, mesh, models, random} = deps;
  const keeper = startViewKeeper(deps);
  const announcer = startAnnouncer(config, deps, () => keeper.view().nodes.size + 1);
  const local = localWorker(mesh.self, models, engines);
  const startedAtMs = clock.monotonicMs();
  let inFlight = 0;
  let catalogue: {version: number; inventory: Uint8Array; models: readonly NamedModel[]} | undefined;

  await announcer.fresh(); // a peer that connects at once must get a record of this node
  await mesh.serve({
    judge: keeper.judge,
    newest: () => [...[announcer.last()].filter(own => own !== undefined), ...keeper.held()],
    inventory: announcer.inventory,
    offer: journalServing(servePeers(local, announcer.fresh), {
      node: mesh.self,
      nodeName: config.nodeName,
      journal,
      modelName: digest => models.find(digest)?.names[0] ?? '',
    }),
    linkChanged(node, link) {
      keeper.linkChanged(node, link);
      if (link?.admitted) announcer.touch();
    },
  });

  const reportDeps = {keeper, announcer, deps};

  function factsFor(request: Asked, digests: readonly Digest[], tried: ReadonlySet<NodeId>): DecisionFacts {
    const {needs, policy, id} = request;
    const question = {digests, needs, policy, tried, nowMs: clock.monotonicMs()};
    return {request: id, question, self: announcer.self(), nodes: keeper.view().nodes, reach: keeper.reach()};
  }

  /** Every name there is, put together anew only when something of it has changed: each request asks for it. */
  function known(): readonly NamedModel[] {
    const version = keeper.version();
    const inventory = announcer.inventory();
    if (catalogue?.version !== version || catalogue.inventory !== inventory) {
      catalogue = {version, inventory, models: namedModels(reportModels(reportDeps, true))};
    }
    return catalogue.models;
  }

  function decidingFor(note: (event: RequestEvent) => void): DispatchDeps {
    return {
      rank(request, digests, tried) {
        const facts = factsFor(request, digests, tried);
        const ranked = decide(facts);
        note({kind: 'decided', facts, ranked});
        return ranked;
      },
      worker: node => (node === mesh.self ? local : mesh.worker(node)),
      heard(record) {
        if (record && record.node !== mesh.self) keeper.judge({record, ageMs: 0});
      },
      failed: keeper.failed,
      succeeded: keeper.succeeded,
      note,
    };
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
    const note = (event: RequestEvent): void => journal.note(request.id, event);
    note(arrivalOf(request));
    const resolution = await resolve(request.model, signal);
    if (resolution.kind !== 'found') throw notFound(request.model, resolution);
    const named = {...request, model: resolution.name};
    const started = await dispatch(named, resolution.digests, decidingFor(note), signal);
    const {node, attempt, digest, response, body} = started;
    body.onEnd = error => {
      inFlight -= 1;
      note({kind: 'ended', ...outcomeOf(error, response.status), usage: readUsage(body.tail.text())});
    };
    const {status, contentType} = response;
    const reason =
      request.policy.placement.kind === 'prefer' && !node.preferred
        ? `preference not met: ${node.reason}`
        : node.reason;
    const facts = {attempts: attempt, policy: formatPolicy(request.policy), reason, model: resolution.name};
    return {run: {...facts, node: node.node, nodeName: node.name, digest}, status, contentType, body};
  }

  return {
    async dispatch(request, signal) {
      inFlight += 1;
      try {
        return await run(request, signal);
      } catch (error) {
        inFlight -= 1;
        const cause: unknown = signal.aborted ? signal.reason : error;
        journal.note(request.id, {kind: 'ended', ...outcomeOf(cause), usage: undefined});
        log('debug', 'request failed', {request: request.id, error: describeError(cause)});
        if (signal.aborted) throw new Fault('CANCELLED', 'the client went away', {cause: error});
        throw error;
      }
    },
    models: () => reportModels(reportDeps, false),
    engines: () => reportEngines(reportDeps),
    nodes: () => reportNodes(reportDeps),
    inFlight: () => inFlight,
    async stop(name) {
      const resolution = resolveModel(name, known());
      if (resolution.kind !== 'found') throw notFound(name, resolution);
      const running = engines.engines().find(({model}) => resolution.digests.includes(model.digest));
      if (!running) return false;
      await engines.stop(running.key);
      return true;
    },
    requests: query => journal.requests(query),
    why(id) {
      const journaled = journal.find(id);
      return journaled && whyReport(journaled);
    },
    route({model, needs, policy = automatic, promptBytes}) {
      const resolution = resolveModel(model, known());
      if (resolution.kind !== 'found') throw notFound(model, resolution);
      const {digests, name} = resolution;
      const ranked = decide(factsFor({id: newRequestId(random), needs, policy}, digests, new Set()));
      return {
        asked: model,
        model: name,
        digests,
        policy: formatPolicy(policy),
        policyFrom: 'request',
        promptBytes,
        ranked,
      };
    },
    async [Symbol.asyncDispose]() {
      await announcer[Symbol.asyncDispose]();
      keeper[Symbol.dispose]();
    },
  };
}

function namedModels(reports: ReturnType<typeof reportModels>): readonly NamedModel[] {
  return reports
    .filter(({problem}) => problem === undefined)
    .map(({digest, names, name, demo, nodes}) => ({
      digest,
      names: [name, ...names.filter(other => other !== name)],
      demo,
      local: nodes.some(node => node.local),
      holders: nodes.length,
    }));
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

/** What a decision needs to know of a request. */
type Asked = Pick<ClientRequest, 'id' | 'needs' | 'policy'>;

function arrivalOf({model, endpoint, policy, body}: ClientRequest): RequestEvent {
  const asked = {model, endpoint, policy: formatPolicy(policy), policyFrom: 'request', bodyBytes: body.length};
  return {kind: 'arrived', role: 'entry', ...asked, caller: undefined, from: undefined};
}
