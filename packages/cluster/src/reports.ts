/** What people and clients are told of the mesh: read-only pictures of this node and of what it has heard. */
import {isAlive, isProven, shortDigest, shortNode, withoutDemo} from '@hearsay/core';
import type {
  Digest,
  EngineBeat,
  EngineReport,
  KnownNode,
  ModelFacts,
  ModelReport,
  NodeId,
  NodeFlags,
  NodeReport,
} from '@hearsay/core';
import type {StoredModel} from '@hearsay/core';
import type {Announcer} from './announcer.ts';
import type {ClusterDeps} from './join-cluster.ts';
import {presetsOf} from './presets-of.ts';
import type {ViewKeeper} from './view-keeper.ts';

export interface ReportDeps {
  readonly keeper: ViewKeeper;
  readonly announcer: Announcer;
  readonly deps: ClusterDeps;
}

interface Holding {
  readonly node: ModelReport['nodes'][number];
  readonly model: ModelFacts;
  readonly engine: EngineBeat | undefined;
}

/** Models of this node and of every peer that can be asked now; one entry a digest. */
export function reportModels(reportDeps: ReportDeps, withDemo: boolean): readonly ModelReport[] {
  const {announcer, deps} = reportDeps;
  const {beat, models} = announcer.self();
  const own = models.map(model => holding(beat.node, beat.name, true, model, beat.engines));
  const others = askable(reportDeps).flatMap(known =>
    (known.inventory?.models ?? []).map(model =>
      holding(known.beat.node, known.beat.name, false, model, known.beat.engines),
    ),
  );
  const byDigest = Map.groupBy([...own, ...others], ({model}) => model.digest);
  const stored = new Map(deps.models.list().map(model => [model.digest, model]));
  const usable = [...byDigest.values()].map(holdings => describeModel(holdings, stored));
  const offered = withDemo ? usable : withoutDemo(usable);
  const broken = deps.models
    .list()
    .filter(({problem}) => problem !== undefined)
    .map(describeBroken);
  const reports = [...markConflicts(offered), ...broken];
  return reports.toSorted((a, b) => a.name.localeCompare(b.name) || (a.digest < b.digest ? -1 : 1));

  function describeBroken(model: StoredModel): ModelReport {
    const only = holding(beat.node, beat.name, true, model, []);
    return {...describeModel([only], new Map([[model.digest, model]])), problem: model.problem};
  }
}

/** Models of nodes that were heard of a moment ago, but to which there is no connection now; one entry a holding. */
export function reportModelsAway(reportDeps: ReportDeps): readonly ModelReport[] {
  return alive(reportDeps)
    .filter(({beat}) => !hasLink(reportDeps, beat.node))
    .flatMap(({beat, inventory}) =>
      (inventory?.models ?? []).map(model => holding(beat.node, beat.name, false, model, [])),
    )
    .map(away => describeModel([away], new Map()));
}

/** Engines of this node with every state, and of peers as they gossip them. */
export function reportEngines(reportDeps: ReportDeps): readonly EngineReport[] {
  const {announcer, deps, keeper} = reportDeps;
  const {beat} = announcer.self();
  const wallMs = deps.clock.wallMs();
  const own = deps.engines
    .engines()
    .filter(({state}) => state !== 'stopped')
    .map((engine): EngineReport => {
      const {readySinceWallMs, unloadInMs} = engine;
      const isForever = unloadInMs === undefined || unloadInMs === Infinity;
      return {
        name: engine.model.names[0],
        digest: deps.models.list().find(({key}) => key === engine.key)?.digest ?? engine.model.digest,
        sizeBytes: engine.model.sizeBytes,
        processor: engine.processor ?? 'llama-server',
        context: engine.context,
        state: engine.state === 'starting' ? 'loading' : engine.state,
        startedSecondsAgo: readySinceWallMs === undefined ? undefined : (wallMs - readySinceWallMs) / 1000,
        node: 'local',
        nodeId: beat.node,
        nodeName: beat.name,
        nodeState: stateOf(beat.flags),
        untilSeconds: isForever ? undefined : unloadInMs / 1000,
        slots: engine.slots,
        busy: engine.busy,
        queued: engine.queued,
        failure: engine.failure,
        loadedShare: engine.loading?.share,
        loadingSecondsLeft: engine.loading && engine.loading.remainingMs / 1000,
      };
    });
  const others = askable(reportDeps).flatMap(known =>
    known.beat.engines.map(engine => describePeerEngine(known, engine)),
  );
  return [...own, ...others];

  function describePeerEngine(known: KnownNode, engine: EngineBeat): EngineReport {
    const heardSecondsAgo = (deps.clock.monotonicMs() - known.madeAtMs) / 1000;
    const model = known.inventory?.models.find(({digest}) => digest === engine.digest);
    return {
      name: model?.names[0] ?? engine.digest,
      digest: engine.digest,
      sizeBytes: engine.sizeBytes,
      processor: 'llama-server',
      context: engine.context,
      state: engine.readiness,
      startedSecondsAgo: engine.readiness === 'ready' ? engine.ageSeconds + heardSecondsAgo : undefined,
      node: keeper.links().get(known.beat.node)?.address ?? shortNode(known.beat.node),
      nodeId: known.beat.node,
      nodeName: known.beat.name,
      nodeState: stateOf(known.beat.flags),
      untilSeconds: engine.untilSeconds < 0 ? undefined : Math.max(0, engine.untilSeconds - heardSecondsAgo),
      slots: engine.slots,
      busy: engine.busy,
      queued: engine.queued,
      failure: undefined,
      loadingSecondsLeft: engine.readiness === 'loading' ? engine.waitMs / 1000 : undefined,
    };
  }
}

/** This node, every node heard of, and every peer that is only seen. */
export function reportNodes(reportDeps: ReportDeps): readonly NodeReport[] {
  const {announcer, deps, keeper} = reportDeps;
  const {beat, models} = announcer.self();
  const links = new Map(deps.mesh.links().map(link => [link.node, link])); // with the round trips of now
  const self: NodeReport = {
    ...describeNode({beat, inventory: {digest: '', models}}),
    local: true,
    address: listeningAddress(deps.mesh.addresses()),
    state: stateOf(beat.flags),
    note: machineNote(beat.flags),
    path: 'self',
    roundTripMs: undefined,
  };
  const heard = [...keeper.view().nodes.values()]
    .filter(known => isAlive(known, deps.clock.monotonicMs()))
    .map((known): NodeReport => {
      const link = links.get(known.beat.node);
      const isLinked = link?.admitted === true;
      return {
        ...describeNode(known),
        local: false,
        address: link?.address ?? '',
        state: isLinked ? stateOf(known.beat.flags) : 'unreachable',
        note: isLinked
          ? machineNote(known.beat.flags)
          : 'not connected: it ended, cannot be reached, or is only heard of through other nodes',
        path: link?.path ?? 'direct',
        relayedBy: link?.relay === undefined ? undefined : nameOf(link.relay),
        roundTripMs: link?.roundTripMs,
      };
    });
  function nameOf(node: NodeId): string {
    return keeper.view().nodes.get(node)?.beat.name ?? shortNode(node);
  }
  const seen = [...links.values()]
    .filter(({node}) => !keeper.view().nodes.has(node))
    .map((link): NodeReport => ({
      id: link.node,
      name: shortNode(link.node),
      local: false,
      address: link.address,
      state: 'seen',
      note: link.refusal ?? 'connected, has not told of itself yet',
      path: link.path,
      roundTripMs: link.roundTripMs,
      version: '',
      memoryKind: 'ram',
      memoryTotalBytes: 0,
      memoryFreeBytes: 0,
      models: 0,
      loaded: [],
      busy: 0,
      slots: 0,
    }));
  return [self, ...[...heard, ...seen].toSorted((a, b) => a.name.localeCompare(b.name) || (a.id < b.id ? -1 : 1))];
}

/** Why it gets fewer requests than it could run. */
function machineNote({batteryShare, isHot}: NodeFlags): string | undefined {
  const battery = batteryShare === undefined ? [] : [`on its battery, ${Math.round(100 * batteryShare)} % full`];
  const notes = [...battery, ...(isHot === true ? ['too hot, so that it is slower'] : [])];
  return notes.length === 0 ? undefined : notes.join('; ');
}

function stateOf({draining, paused}: NodeFlags): 'alive' | 'draining' | 'paused' {
  if (draining) return 'draining';
  return paused ? 'paused' : 'alive';
}

/** Peers that could be asked now: a live beat and an admitted link. */
function askable(reportDeps: ReportDeps): readonly KnownNode[] {
  return alive(reportDeps).filter(({beat}) => hasLink(reportDeps, beat.node));
}

function alive({keeper, deps}: ReportDeps): readonly KnownNode[] {
  const nowMs = deps.clock.monotonicMs();
  return [...keeper.view().nodes.values()].filter(known => isAlive(known, nowMs));
}

function hasLink({keeper}: ReportDeps, node: NodeId): boolean {
  return keeper.links().get(node)?.admitted === true;
}

function holding(id: NodeId, name: string, local: boolean, model: ModelFacts, engines: readonly EngineBeat[]): Holding {
  return {node: {id, name, local}, model, engine: engines.find(({digest}) => digest === model.digest)};
}

/** All holdings are of one digest; this node's own names come first. */
function describeModel(holdings: readonly Holding[], stored: ReadonlyMap<Digest, StoredModel>): ModelReport {
  const [first] = holdings;
  if (!first) throw new TypeError('a model without a holder');
  const {digest, sizeBytes, architecture, quant, parameters, contextMax, capabilities} = first.model;
  const states = holdings.map(({engine}) => engine?.readiness);
  return {
    name: first.model.names[0],
    names: [...new Set(holdings.flatMap(({model}) => model.names))],
    digest,
    sizeBytes,
    architecture,
    quant,
    parameters,
    contextMax,
    capabilities,
    ...presetsOf(holdings),
    status: states.includes('ready') ? 'loaded' : states.includes('loading') ? 'loading' : 'unloaded',
    nodes: holdings.map(({node}) => node),
    conflict: false,
    demo: holdings.every(({model}) => model.demo),
    problem: undefined,
    hashed: stored.get(digest)?.hashed,
  };
}

/** One name, several digests: every one of them is marked (law 6). While one is unknown, they may be the same. */
function markConflicts(reports: readonly ModelReport[]): readonly ModelReport[] {
  const holders = new Map<string, Set<Digest>>();
  for (const {names, digest} of reports) {
    if (!isProven(digest)) continue;
    for (const name of names) {
      const key = name.toLowerCase();
      holders.set(key, (holders.get(key) ?? new Set()).add(digest));
    }
  }
  return reports.map(report => ({
    ...report,
    conflict: report.names.some(name => (holders.get(name.toLowerCase())?.size ?? 0) > 1),
  }));
}

function describeNode({
  beat,
  inventory,
}: Pick<KnownNode, 'beat' | 'inventory'>): Omit<
  NodeReport,
  'local' | 'address' | 'state' | 'note' | 'path' | 'roundTripMs'
> {
  const models = inventory?.models ?? [];
  const nameOf = (digest: Digest): string =>
    models.find(model => model.digest === digest)?.names[0] ?? shortDigest(digest);
  return {
    id: beat.node,
    name: beat.name,
    version: beat.version,
    memoryKind: beat.memory.kind,
    memoryTotalBytes: beat.memory.totalBytes,
    memoryFreeBytes: beat.memory.freeBytes,
    models: withoutDemo(models).length,
    loaded: beat.engines.filter(({readiness}) => readiness === 'ready').map(({digest}) => nameOf(digest)),
    busy: beat.engines.reduce((sum, {busy}) => sum + busy, 0),
    slots: beat.engines.reduce((sum, {slots}) => sum + slots, 0),
  };
}

/** `host:port` of the first address that others can use. */
function listeningAddress(addresses: readonly string[]): string {
  for (const address of addresses) {
    const [, host, port] = /^\/ip[46]\/([^/]+)\/tcp\/(\d+)/u.exec(address) ?? [];
    if (host !== undefined && port !== undefined) return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
  }
  return '';
}
