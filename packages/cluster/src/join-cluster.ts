import {easyMachine, whyReport} from '@hearsay/core';
import type {
  Cluster,
  ControlCommand,
  ControlOutcome,
  EngineHost,
  HostedService,
  Environment,
  Journal,
  MachineWatch,
  Mesh,
  ModelStore,
  NodeFlags,
  TextStore,
} from '@hearsay/core';
import {Affinity} from './affinity.ts';
import {startAnnouncer} from './announcer.ts';
import {controlHere} from './control-here.ts';
import {controlMesh} from './control-mesh.ts';
import {LoadClaims} from './load-claims.ts';
import {makeEntry} from './entry.ts';
import type {EntryConfig} from './entry.ts';
import {failingEngines} from './failing-engines.ts';
import {guardWorker} from './guard-worker.ts';
import {journalServing} from './journal-serving.ts';
import {keepOperator} from './keep-operator.ts';
import {localWorker} from './local-worker.ts';
import {reportEngines, reportModels, reportNodes} from './reports.ts';
import {servePeers} from './serve-peer.ts';
import type {ServePeer} from './serve-peer.ts';
import {startExperience} from './start-experience.ts';
import {startPreload} from './start-preload.ts';
import {startSketching} from './start-sketching.ts';
import {unloadRemoved} from './unload-removed.ts';
import {startViewKeeper} from './view-keeper.ts';

export interface ClusterConfig extends EntryConfig {
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
  readonly journal: Journal;
  /** Where it is kept what the owner has said about this node. */
  readonly operatorStore: TextStore;
  /** Battery and heat of this machine; absent: nobody looks. */
  readonly machine?: MachineWatch;
  /** Default: none. */
  readonly hosted?: readonly HostedService[];
}

/** How often a node that is about to end looks whether anything still runs. */
const retireLookMs = 50;

/**
 * Joins the mesh as one node: announces it, listens to the others, serves them, and dispatches what its gateway gets.
 */
export async function joinCluster(config: ClusterConfig, deps: ClusterDeps): Promise<Cluster> {
  const {clock, engines, journal, log, mesh, models, operatorStore} = deps;
  const {nodeName} = config;
  const keeper = startViewKeeper(deps);
  const operator = await keepOperator(operatorStore, () => {
    announcer.touch();
    unloadIdle();
  });
  let isRetiring = false;
  const ownFlags = (): NodeFlags => ({
    ...operator.flags(),
    ...flagsOf(deps.machine),
    ...(isRetiring ? {draining: true} : {}),
  });
  const experience = await startExperience(config.experienceFile, deps);
  const affinity = new Affinity();
  const announcer = startAnnouncer(
    config,
    {...deps, experience},
    {
      nodeCount: () => keeper.view().nodes.size + 1,
      ownFlags,
    },
  );
  const claims = new LoadClaims({...deps, keeper, fresh: announcer.fresh});
  const worker = claims.around(localWorker(mesh.self, {models, engines, experience, affinity}));
  const local = guardWorker(worker, {nodeName, models, flags: ownFlags});

  const sketching = startSketching(config, {...deps, affinity});
  const serving = journalServing(servePeers(local, announcer, claims), {
    node: mesh.self,
    nodeName,
    journal,
    modelName: digest => models.find(digest)?.names[0] ?? '',
  });

  const failing = failingEngines({clock, self: announcer.self, view: keeper.view});
  await announcer.fresh(); // a peer that connects at once must get a record of this node
  await mesh.serve({
    judge: keeper.judge,
    newest: () => [...[announcer.last()].filter(own => own !== undefined), ...keeper.held()],
    inventory: announcer.inventory,
    ...(config.takesWishes === false ? {} : {control: async request => controlHere(request, deps)}),
    offer: config.role === 'use' ? refuseAll : serving,
    nameOf: node => keeper.view().nodes.get(node)?.beat.name,
    moved: keeper.forget,
    linkChanged(node, link) {
      if (!link) failing.forget(node);
      keeper.linkChanged(node, link); // the exchange has told the newcomer of this node already
    },
  });

  const reportDeps = {keeper, announcer, deps};
  const choosing = {mesh, clock, keeper, announcer, affinity, failing, local};
  const entry = makeEntry(config, {...reportDeps, operator, choosing, hosted: deps.hosted ?? []});

  /** While the owner uses the machine, models that nobody uses give their memory back. */
  function unloadIdle(): void {
    if (!operator.flags().paused) return;
    for (const {key, state, busy, queued} of engines.engines()) {
      if (state !== 'ready' || busy + queued > 0) continue;
      engines.stop(key).catch((error: unknown) => log('warn', 'a model could not be unloaded', {key, error}));
    }
  }
  const watch = engines.onChange(unloadIdle);
  const machineWatch = deps.machine?.onChange(announcer.touch);

  async function control(command: ControlCommand, signal: AbortSignal): Promise<readonly ControlOutcome[]> {
    const {digests} = await entry.find(command.model, signal);
    return controlMesh(command, digests, {...deps, rank: entry.rank}, signal);
  }
  const preload = startPreload(config.preload ?? [], deps);
  const removal = unloadRemoved(deps);

  return {
    dispatch: entry.dispatch,
    route: entry.route,
    inFlight: entry.inFlight,
    waiting: entry.waiting,
    models: () => reportModels(reportDeps, false),
    engines: () => reportEngines(reportDeps),
    nodes: () => reportNodes(reportDeps),
    async stop(model) {
      const outcomes = await control({kind: 'stop', model, node: undefined}, new AbortController().signal);
      return outcomes.some(({answer}) => answer.kind === 'engine' && answer.engine !== undefined);
    },
    control,
    requests: query => journal.requests(query),
    why(id) {
      const journaled = journal.find(id);
      return journaled && whyReport(journaled);
    },
    async retire(signal) {
      isRetiring = true;
      announcer.touch();
      const isBusy = (): boolean =>
        entry.inFlight() > 0 || engines.engines().some(({busy, queued}) => busy + queued > 0);
      while (isBusy() && !signal.aborted) await clock.sleep(retireLookMs, signal).catch(() => undefined);
    },
    operator: operator.state,
    operate: operator.change,
    async [Symbol.asyncDispose]() {
      removal[Symbol.dispose]();
      preload[Symbol.dispose]();
      watch[Symbol.dispose]();
      machineWatch?.[Symbol.dispose]();
      await announcer[Symbol.asyncDispose]();
      await sketching[Symbol.asyncDispose]();
      await experience[Symbol.asyncDispose]();
      keeper[Symbol.dispose]();
    },
  };
}

function flagsOf(machine: MachineWatch | undefined): Pick<NodeFlags, 'batteryShare' | 'isHot'> {
  const {batteryShare, isHot} = machine?.state() ?? easyMachine;
  return {...(batteryShare === undefined ? {} : {batteryShare}), ...(isHot ? {isHot} : {})};
}

const refuseAll: ServePeer = async () => ({
  kind: 'refused',
  code: 'policy',
  message: 'this node runs no requests of others (mesh.role)',
});
