import {join} from 'node:path';
import {joinCluster, startJournal} from '@hearsay/cluster';
import {Fault} from '@hearsay/core';
import type {Cluster, EngineHost, Environment, ModelStore, StatusReport} from '@hearsay/core';
import {
  knownArchitectures,
  startEngineHost,
  startExternalEngines,
  startHosted,
  startMachineWatch,
} from '@hearsay/engine';
import type {Engine, EngineHostConfig, ExternalEngineConfig} from '@hearsay/engine';
import {startGateway, startKeyRing} from '@hearsay/gateway';
import {startMesh} from '@hearsay/mesh';
import type {AdministeredMesh} from '@hearsay/mesh';
import {demoModelPath, startModelStore} from '@hearsay/models';
import {defaultMeshPort} from './addresses.ts';
import {banner} from './banner.ts';
import type {Config} from './config.ts';
import {fileStore} from './file-store.ts';
import type {ExternalServer} from './external-servers.ts';
import {withHostedKey} from './hosted-settings.ts';
import {lockDataFolder} from './lock-data-folder.ts';
import {nextBoot} from './next-boot.ts';
import {provideEngine} from './provide-engine.ts';
import {openFilesMax} from './system.ts';
import type {Variables} from './system.ts';
import type {Terminal} from './terminal.ts';
import {unmatchedTables} from './unmatched-tables.ts';

/** What clients are told of a context before an engine has been sized. */
const contextUntilKnown = 8192;

export interface ServeOptions {
  readonly config: Config;
  readonly version: string;
  readonly cacheFolder: string;
  readonly variables: Variables;
  /** Whether an engine may be installed when none is found. */
  readonly mayInstall: boolean;
}

interface ServeDeps extends Environment {
  readonly terminal: Terminal;
}

/** What ends a node. */
export interface Ends {
  /** Take nothing new, and end when nothing runs any more. */
  readonly retire: AbortSignal;
  /** End now. */
  readonly now: AbortSignal;
  /** The end has begun: from here on it must not take long. */
  readonly begun: () => void;
}

/**
 * Runs a node until it is to end, and then ends it in the reverse order. The composition root: parts meet only here.
 */
export async function serve(options: ServeOptions, deps: ServeDeps, ends: Ends): Promise<void> {
  const {config, version} = options;
  const stop = AbortSignal.any([ends.retire, ends.now]); // while it starts there is nothing to wait for
  const {clock, terminal} = deps;
  const startedAtMs = clock.monotonicMs();
  const inData = (name: string): string => join(config.dataFolder, name);

  await using stack = new AsyncDisposableStack();
  const lock = stack.use(await lockDataFolder(config.dataFolder));
  const boot = await nextBoot(config.dataFolder, clock);
  const wish = {...options, path: config.engine.path, searchPath: options.variables['PATH'] ?? ''};
  const engine = await provideEngine(wish, deps, stop);
  const ownModels = stack.use(
    await startModelStore(
      {
        folders: config.models.folders,
        stores: config.models.stores,
        digestCacheFile: inData('digests.json'),
        knowsArchitecture: typeof engine === 'string' ? undefined : knownArchitectures(engine.command),
        demoModel: config.models.demo ? demoModelPath : undefined,
      },
      deps,
    ),
  );
  const {path: _, preload, remoteControl, ...engineConfig} = config.engine;
  const external = config.externalEngines.map(server => withKey(server, options.variables));
  // Before the mesh, so that it still hears how the requests of peers end when that closes.
  const journal = stack.use(startJournal({...config.journal, file: inData('journal.db')}, deps));
  const starting = {
    engines: startEngines(
      {
        ...engineConfig,
        engine: describedEngine(engine),
        runFolder: inData('run'),
        loadTimesFile: inData('load-times.json'),
        memoryFile: inData('memory.json'),
        cacheRamMiB: 0,
        environment: options.variables,
        onLoaded: ({key}, told) => ownModels.confirm(key, told),
      },
      {external, ownModels},
      deps,
    ),
    mesh: startMesh(
      {
        mesh: config.mesh.name,
        identityFile: inData('node.key'),
        nodeName: config.name,
        port: config.mesh.port,
        peers: config.mesh.peers,
        relay: config.mesh.relay,
        announce: config.mesh.announce,
        defaultPort: defaultMeshPort,
      },
      deps,
    ),
  };
  const [{engines, models}, mesh] = await bothIn(stack, starting.engines, starting.mesh);
  stop.throwIfAborted();
  const services = config.hosted.map(service => withHostedKey(service, options.variables));
  const hosted = stack.use(await startHosted(services, {...deps, store: fileStore(inData('hosted.json'))}));
  const machine = stack.use(startMachineWatch({root: '/sys', platform: process.platform}, deps));
  const cluster = stack.use(
    await joinCluster(
      {
        nodeName: config.name,
        version,
        boot,
        role: config.mesh.role,
        ...config.routing,
        contextMax: config.engine.contextMax,
        experienceFile: inData('experience.json'),
        affinityKey: () => affinityKey(mesh, config.mesh.name),
        preload,
        takesWishes: remoteControl,
        workloads: config.workloads,
        policy: config.routing.policy,
      },
      {
        ...deps,
        mesh,
        engines,
        models,
        journal,
        machine,
        operatorStore: fileStore(inData('operator.json')),
        hosted: hosted.services,
      },
    ),
  );
  const status = (): StatusReport => ({
    ...reportStatus({config, mesh, engines, cluster}),
    version,
    gateway: gateway.url,
    engine: typeof engine === 'string' ? engine : engines.describe(),
    uptimeSeconds: (clock.monotonicMs() - startedAtMs) / 1000,
  });
  const keys = await startKeyRing(fileStore(inData('keys.json')), deps);
  const gateway = stack.use(
    await startGateway(
      {
        ...config.gateway,
        openFilesMax: openFilesMax(),
        contextTokens: config.engine.contextMax ?? contextUntilKnown,
        presetsFile: inData('names.json'),
        blobsFolder: inData('models'),
      },
      {...deps, cluster, status, mesh: mesh.admin, keyRing: keys, openApi: () => document(version)},
    ),
  );
  await lock.publish(gateway.url);

  for (const warning of unmatchedTables(Object.keys(config.engine.models), models.list())) deps.log('warn', warning);
  const openness = mesh.admin.report();
  const hasEngine = typeof engine !== 'string';
  const requireKey = config.gateway.requireKey || config.gateway.keys.length > 0;
  const known = {models: cluster.models(), nodes: cluster.nodes()};
  terminal.out(banner({status: status(), ...known, hasEngine, requireKey, openness}));
  await aborted(stop);
  gateway.retire();
  await cluster.retire(ends.now);
  ends.begun();
}

/** The engines of this machine, ours and those that somebody else runs, with the models of both. */
async function startEngines(
  config: EngineHostConfig,
  {external, ownModels}: {readonly external: readonly ExternalEngineConfig[]; readonly ownModels: ModelStore},
  deps: Environment,
) {
  await using stack = new AsyncDisposableStack();
  const engines = stack.use(await startEngineHost(config, deps));
  const all = stack.use(await startExternalEngines(external, {engines, models: ownModels}, deps));
  const opened = stack.move();
  return {engines: all.engines, models: all.models, [Symbol.asyncDispose]: () => opened.disposeAsync()};
}

/**
 * Two parts that start at the same time: one waits for the drivers of the machine, the other has most to compute. If
 * one fails, the stack has the other one to close.
 */
async function bothIn<A extends AsyncDisposable, B extends AsyncDisposable>(
  stack: AsyncDisposableStack,
  first: Promise<A>,
  second: Promise<B>,
): Promise<readonly [A, B]> {
  const started = await Promise.allSettled([first, second]);
  for (const each of started) if (each.status === 'fulfilled') stack.use(each.value);
  return Promise.all([first, second]);
}

/** Nobody may ever ask for it, and it needs the schemas of all commands. */
async function document(version: string) {
  const {openApi} = await import('./open-api.ts');
  return openApi(version);
}

/** An open mesh has no secret; its name stands in, so that whoever is on the LAN may try prompts against a sketch. */
function affinityKey(mesh: AdministeredMesh, meshName: string): string {
  const secret = mesh.secret();
  return `hearsay sketch 1 ${secret === undefined ? meshName : Buffer.from(secret).toString('hex')}`;
}

function describedEngine(engine: Engine | string) {
  if (typeof engine === 'string') return undefined;
  const {command, leadingArguments, source, version} = engine;
  const description = `${version === undefined ? command : `llama-server ${version}`} (${describeSource[source]})`;
  return {command, leadingArguments, description};
}

/** The key itself stands in no file. */
function withKey({keyVariable, ...server}: ExternalServer, variables: Variables): ExternalEngineConfig {
  const apiKey = keyVariable === undefined ? undefined : variables[keyVariable];
  if (keyVariable === undefined || apiKey) return {...server, apiKey};
  throw new Fault('BAD_CONFIG', `the external engine ${server.name} needs its key in the variable ${keyVariable}`);
}

const describeSource: Readonly<Record<Engine['source'], string>> = {
  config: 'from the config',
  path: 'found on PATH',
  installed: 'installed by hearsay',
};

interface Parts {
  readonly config: Config;
  readonly mesh: AdministeredMesh;
  readonly engines: EngineHost;
  readonly cluster: Cluster;
}

function reportStatus({
  config,
  mesh,
  cluster,
}: Parts): Omit<StatusReport, 'version' | 'gateway' | 'engine' | 'uptimeSeconds'> {
  const {draining, paused, rules} = cluster.operator();
  return {
    id: mesh.self,
    name: config.name,
    mesh: mesh.admin.report().mesh,
    meshAddresses: mesh.addresses(),
    processId: process.pid,
    peers: cluster.nodes().filter(node => !node.local && node.state === 'alive').length,
    models: cluster.models().filter(model => model.nodes.some(node => node.local)).length,
    loaded: cluster.engines().filter(engine => engine.node === 'local' && engine.state === 'ready').length,
    inFlight: cluster.inFlight(),
    role: config.mesh.role,
    state: draining ? 'draining' : paused ? 'paused' : 'serving',
    policies: rules.length,
    dataFolder: config.dataFolder,
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), {once: true});
  });
}
