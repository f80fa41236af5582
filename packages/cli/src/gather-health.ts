import {constants} from 'node:fs';
import {access, readdir, readFile} from 'node:fs/promises';
import {freemem, totalmem} from 'node:os';
import {join} from 'node:path';
import {describeError, Fault, hasCode} from '@hearsay/core';
import {engineVersion, findEngine, livingEngines} from '@hearsay/engine';
import {inspectNetworks, probeMulticast} from '@hearsay/mesh';
import type {Config} from './config.ts';
import type {DaemonClient} from './daemon-client.ts';
import {modelsSchema, nodesSchema, statusSchema} from './daemon-reports.ts';
import {isPortFree, portOwner} from './inspect-port.ts';
import type {DaemonFacts, FolderFacts, HealthFacts, PortFacts} from './judge-health.ts';
import {meshSchema} from './mesh-reports.ts';
import {readRunningDaemon} from './running-daemon.ts';
import {systemClock, systemRandom} from './system.ts';
import type {Variables} from './system.ts';

/** A drive that hangs must not hang this command too. */
const folderMsMax = 3000;

export interface HealthQuestion {
  readonly config: Config;
  readonly client: DaemonClient;
  readonly cacheFolder: string;
  readonly variables: Variables;
}

/** Looks at this machine and asks the daemon, if there is one; changes nothing. */
export async function gatherHealth({config, client, cacheFolder, variables}: HealthQuestion): Promise<HealthFacts> {
  const {daemon, networks: told} = await askDaemon(client, config.dataFolder);
  const status = 'status' in daemon ? daemon.status : undefined;
  const dataFolder = status?.dataFolder ?? config.dataFolder; // flags of the daemon may have chosen another one
  const owner = await readRunningDaemon(dataFolder);
  const [engine, multicast, networks, folders, engines, lastStartMs, mesh, gateway] = await Promise.all([
    lookForEngine(config, cacheFolder, variables),
    probeMulticast({clock: systemClock, random: systemRandom}),
    told ?? lookAtNetworks(join(dataFolder, 'node.key')),
    Promise.all(foldersOf(config, dataFolder).map(lookAtFolder)),
    livingEngines(join(dataFolder, 'run')),
    lastStart(dataFolder),
    lookAtPort(config.mesh.port, '0.0.0.0', status?.meshAddresses.flatMap(portOf)[0]),
    lookAtPort(config.gateway.port, config.gateway.host, status && portOf(status.gateway)[0]),
  ]);
  return {
    daemon,
    engine,
    memory: {freeBytes: freemem(), totalBytes: totalmem()},
    ports: {mesh, gateway},
    multicast,
    networks,
    folders,
    orphans: owner === undefined ? engines : [],
    clock: {wallMs: systemClock.wallMs(), lastStartMs},
  };
}

interface Answers {
  readonly daemon: HealthFacts['daemon'];
  readonly networks: HealthFacts['networks'] | undefined;
}

async function askDaemon(client: DaemonClient, dataFolder: string): Promise<Answers> {
  try {
    const [status, nodes, models, mesh] = await Promise.all([
      client.list('/hearsay/v1/status', statusSchema),
      client.list('/hearsay/v1/nodes', nodesSchema),
      client.list('/hearsay/v1/models', modelsSchema),
      client.list('/hearsay/v1/mesh', meshSchema).catch(() => undefined), // only for programs of its own machine
    ]);
    const daemon: DaemonFacts = {
      status: status.report,
      nodes: nodes.report.nodes,
      models: models.report.models,
      mesh: mesh?.report,
    };
    return {daemon, networks: mesh?.report.networks};
  } catch (error) {
    const isStarted = (await readRunningDaemon(dataFolder)) !== undefined || isRefusal(error);
    const missing = describeError(error).replace(/; start one with: .*$/u, ''); // the remedy says it
    return {daemon: {missing, isStarted}, networks: undefined};
  }
}

/** Something answered, and said no. */
function isRefusal(error: unknown): boolean {
  return error instanceof Fault && error.code !== 'PEER_FAILED';
}

async function lookForEngine(
  config: Config,
  cacheFolder: string,
  variables: Variables,
): Promise<HealthFacts['engine']> {
  try {
    const search = {configuredCommand: config.engine.path, searchPath: variables['PATH'] ?? '', cacheFolder};
    const engine = await findEngine(search, {clock: systemClock});
    if (engine === undefined) return {missing: 'there is no llama-server on this machine'};
    return {command: engine.command, version: await engineVersion(engine, {clock: systemClock})};
  } catch (error) {
    return {missing: describeError(error)};
  }
}

async function lookAtNetworks(identityFile: string): Promise<HealthFacts['networks']> {
  try {
    return await inspectNetworks(identityFile);
  } catch (error) {
    return {missing: describeError(error)};
  }
}

async function lookAtPort(port: number, host: string, used: number | undefined): Promise<PortFacts> {
  if (port === used) return {port, state: 'ours', owner: undefined, used};
  if (port === 0 || (await isPortFree(port, host)))
    return {port: port || (used ?? 0), state: 'free', owner: undefined, used};
  return {port, state: 'taken', owner: await portOwner(port), used};
}

/** Of a multiaddr or a URL. */
function portOf(address: string): readonly number[] {
  const [, port] = /(?:\/tcp\/|:)(\d+)(?:\/|$)/u.exec(address) ?? [];
  return port === undefined ? [] : [Number(port)];
}

type Place = Pick<FolderFacts, 'path' | 'kind'>;

function foldersOf({models}: Config, dataFolder: string): readonly Place[] {
  return [
    {path: dataFolder, kind: 'data'},
    ...models.folders.map((path): Place => ({path, kind: 'wanted'})),
    ...models.stores.map(({path}): Place => ({path, kind: 'other'})),
  ];
}

async function lookAtFolder({path, kind}: Place): Promise<FolderFacts> {
  using limit = new DisposableStack();
  const late = new Promise<never>((_, reject) => {
    const fail = (): void => reject(new Error(`no answer within ${folderMsMax / 1000} s; does its drive hang?`));
    limit.use(systemClock.after(folderMsMax, fail));
  });
  try {
    const look = async (): Promise<void> => {
      await readdir(path);
      if (kind === 'data') await access(path, constants.W_OK);
    };
    await Promise.race([look(), late]);
    return {path, kind, state: 'readable', reason: undefined};
  } catch (error) {
    const isMissing = hasCode(error, 'ENOENT');
    return {path, kind, state: isMissing ? 'missing' : 'broken', reason: describeError(error)};
  }
}

/** The wall clock at the last start, which the number of that start is made of. */
async function lastStart(dataFolder: string): Promise<number> {
  const text = await readFile(join(dataFolder, 'boot'), 'utf8').catch(() => '');
  return /^\d{1,12}\s*$/u.test(text) ? Number(text) * 1000 : 0;
}
