import {formatBytes} from '@hearsay/core';
import type {MeshReport, ModelReport, NetworkReport, NodeReport, StatusReport} from '@hearsay/core';

export type Grade = 'ok' | 'warning' | 'problem';

/** One line of `hearsay doctor`. */
export interface Check {
  readonly subject: string;
  readonly grade: Grade;
  readonly finding: string;
  /** What to do about it; only where there is something to do. */
  readonly remedy: string | undefined;
}

/** A port of this machine, as somebody found it who tried to listen on it. */
export interface PortFacts {
  readonly port: number;
  /** `ours`: the daemon that was asked listens there. */
  readonly state: 'free' | 'ours' | 'taken';
  /** The program that has it, where the system tells. */
  readonly owner: string | undefined;
  /** Where the daemon that was asked listens instead. */
  readonly used: number | undefined;
}

export interface FolderFacts {
  readonly path: string;
  /** `wanted`: a person named it; `other`: a place where another program may keep models; `data`: must be writable. */
  readonly kind: 'wanted' | 'other' | 'data';
  readonly state: 'readable' | 'missing' | 'broken';
  readonly reason: string | undefined;
}

/** What the running daemon says of itself. */
export interface DaemonFacts {
  readonly status: StatusReport;
  readonly nodes: readonly NodeReport[];
  readonly models: readonly ModelReport[];
  /** Undefined when this program may not ask about membership. */
  readonly mesh: Pick<MeshReport, 'mode' | 'warnings'> | undefined;
}

/** All that `hearsay doctor` looks at. */
export interface HealthFacts {
  /** Or why there is none that answers. */
  readonly daemon: DaemonFacts | {readonly missing: string; readonly isStarted: boolean};
  readonly engine: {readonly version: string; readonly command: string} | {readonly missing: string};
  readonly memory: {readonly freeBytes: number; readonly totalBytes: number};
  readonly ports: {readonly mesh: PortFacts; readonly gateway: PortFacts};
  readonly multicast: readonly {readonly interface: string; readonly problem: string | undefined}[];
  readonly networks: readonly NetworkReport[] | {readonly missing: string};
  readonly folders: readonly FolderFacts[];
  /** Engines that run and belong to no running daemon. */
  readonly orphans: readonly number[];
  readonly clock: {readonly wallMs: number; readonly lastStartMs: number};
}

/** Below this a small model with a short context does not start; below the other one only toys do. */
const memoryBytesWarning = 2 * 1024 ** 3;
const memoryBytesProblem = 512 * 1024 ** 2;

/** A clock that is off by this much has been set back; restarts in quick succession move the number by less. */
const clockMsMax = 10 * 60_000;

/** Before the first version of this program there was no node: such a clock was never set. */
const epochMs = Date.UTC(2026, 0, 1);

/** Pure: what the facts mean, in the order in which a person should look. */
export function judgeHealth(facts: HealthFacts): readonly Check[] {
  const {daemon, ports} = facts;
  const here = 'status' in daemon ? daemon : undefined;
  return [
    judgeDaemon(daemon),
    judgePort('mesh port', ports.mesh, 'let the other nodes through the firewall there, or set mesh.port'),
    judgePort('gateway port', ports.gateway, 'set gateway.port, or tell clients the other port'),
    ...judgeNetworks(facts.networks, here?.mesh?.mode === 'members'),
    ...judgeMulticast(facts.multicast),
    ...(here === undefined ? [] : [...judgePeers(here), ...judgeFirewall(here), ...judgeNames(here)]),
    judgeEngine(facts.engine),
    judgeMemory(facts.memory),
    ...judgeFolders(facts.folders),
    judgeOrphans(facts.orphans),
    judgeClock(facts.clock),
  ];
}

/** The grade of the worst check. */
export function worstOf(checks: readonly Check[]): Grade {
  const grades = checks.map(({grade}) => grade);
  if (grades.includes('problem')) return 'problem';
  return grades.includes('warning') ? 'warning' : 'ok';
}

function ok(subject: string, finding: string): Check {
  return {subject, grade: 'ok', finding, remedy: undefined};
}

function judgeDaemon(daemon: HealthFacts['daemon']): Check {
  const subject = 'daemon';
  if ('status' in daemon) {
    const {name, gateway, version} = daemon.status;
    return ok(subject, `${name} answers at ${gateway} (hearsay ${version})`);
  }
  const {missing: finding, isStarted} = daemon;
  if (!isStarted) return {subject, grade: 'warning', finding, remedy: 'hearsay serve'};
  const remedy = 'look at its log; if it hangs, end it and start it again: hearsay serve';
  return {subject, grade: 'problem', finding, remedy};
}

function judgePort(subject: string, {port, state, owner, used}: PortFacts, remedy: string): Check {
  if (state === 'free') return ok(subject, `${port} is free`);
  if (state === 'ours') return ok(subject, `${port} is used by this node`);
  const instead = used === undefined ? 'the next free one will be used' : `this node uses ${used}`;
  const by = owner === undefined ? 'another program' : owner;
  return {subject, grade: 'warning', finding: `${port} is taken by ${by}; ${instead}`, remedy};
}

function judgeNetworks(networks: HealthFacts['networks'], isClosed: boolean): readonly Check[] {
  const subject = 'network';
  if (isClosed) return [ok(subject, 'the mesh is closed: its members are admitted from everywhere')];
  if ('missing' in networks) {
    return [{subject, grade: 'problem', finding: networks.missing, remedy: 'correct or delete that file'}];
  }
  const here = networks.filter(({present, subnets}) => present && subnets.length > 0);
  if (here.length === 0) {
    const finding = 'this machine has no private network, so no other node finds it by itself';
    return [
      {subject, grade: 'warning', finding, remedy: 'connect it, or use a closed mesh with a relay: hearsay join'},
    ];
  }
  return here.map(({interface: name, kind, subnets, trusted}): Check => {
    const what = `${name} (${subnets.join(', ')})`;
    if (trusted) return ok(subject, `${what} is trusted`);
    if (kind === 'virtual') return ok(subject, `${what} is not trusted, as it belongs to containers`);
    const remedy = `if its machines are yours: hearsay network trust ${name}`;
    // A VPN that nobody has trusted is how it should be; a LAN is where the other nodes would be.
    if (kind === 'overlay') return {...ok(subject, `${what} is not trusted`), remedy};
    return {subject, grade: 'warning', finding: `${what} is not trusted: nobody there is admitted`, remedy};
  });
}

function judgeMulticast(probes: HealthFacts['multicast']): readonly Check[] {
  return probes.map(({interface: name, problem}) => {
    const subject = 'multicast';
    if (problem === undefined) return ok(subject, `works on ${name}`);
    const remedy = 'open UDP 5353 to 224.0.0.251, or name one node on the other: mesh.peers, --peer ADDRESS';
    return {subject, grade: 'warning', finding: `does not work on ${name}: ${problem}`, remedy};
  });
}

function judgePeers({nodes}: DaemonFacts): readonly Check[] {
  const subject = 'peers';
  const others = nodes.filter(({local}) => !local);
  const bad = others.filter(({state}) => state === 'seen' || state === 'unreachable');
  const good = others.length - bad.length;
  const noted = bad.map(({name, address, state, note}): Check => {
    const finding = `${name}${address === '' ? '' : ` at ${address}`} is ${state}: ${note ?? 'no reason is known'}`;
    const seen = 'do what the reason says, on that node or here (docs/operations.md)';
    const remedy = state === 'seen' ? seen : 'open its mesh port to this machine, or name it here: --peer ADDRESS';
    return {subject, grade: 'warning', finding, remedy};
  });
  if (others.length > 0) return [...(good > 0 ? [ok(subject, `${good} connected`)] : []), ...noted];
  const finding = 'this node knows no other';
  const remedy = 'start hearsay serve on another machine of this network; if it is running: --peer ADDRESS on one side';
  return [{...ok(subject, finding), remedy}];
}

function judgeFirewall({mesh}: DaemonFacts): readonly Check[] {
  const walled = (mesh?.warnings ?? []).filter(warning => warning.includes('does not answer there'));
  const remedy =
    'open that port of TCP in its firewall, or the mesh port of this node in the firewall here: one is enough';
  return walled.map(finding => ({subject: 'firewall', grade: 'warning', finding, remedy}));
}

function judgeNames({nodes, models, mesh}: DaemonFacts): readonly Check[] {
  const subject = 'names';
  const byName = Map.groupBy(
    nodes.filter(({state}) => state !== 'seen'),
    ({name}) => name.toLowerCase(),
  );
  const twins = [...byName.values()].filter(({length}) => length > 1);
  const checks: readonly Check[] = [
    ...twins.map(([first, ...more]): Check => ({
      subject,
      grade: 'warning',
      finding: `${more.length + 1} nodes are called ${first?.name ?? ''}`,
      remedy: 'give each its own name: hearsay serve --name NAME',
    })),
    ...[...new Set(models.filter(({conflict}) => conflict).map(({name}) => name))].map((name): Check => ({
      subject,
      grade: 'warning',
      finding: `${name} is the name of different files`,
      remedy: 'ask for one of them by its digest, or rename a file (hearsay models lists both)',
    })),
    ...(mesh?.warnings ?? [])
      .filter(warning => warning.includes('same key'))
      .map((finding): Check => ({
        subject,
        grade: 'problem',
        finding,
        remedy: 'delete node.key in the data folder of one of the two, and start it again',
      })),
  ];
  const unique = ok(subject, 'no two nodes and no two models share one');
  const passes = (mesh?.warnings ?? []).filter(warning => warning.startsWith('the pass of'));
  const ending = passes.map((finding): Check => ({
    subject: 'membership',
    grade: 'warning',
    finding,
    remedy: 'connect this node to a keeper, or get a new code there: hearsay invite',
  }));
  return [...ending, ...(checks.length > 0 ? checks : [unique])];
}

function judgeEngine(engine: HealthFacts['engine']): Check {
  const subject = 'engine';
  if ('version' in engine) return ok(subject, `llama-server ${engine.version} (${engine.command})`);
  return {subject, grade: 'problem', finding: engine.missing, remedy: 'hearsay engine install, or set engine.path'};
}

function judgeMemory({freeBytes, totalBytes}: HealthFacts['memory']): Check {
  const subject = 'memory';
  const finding = `${formatBytes(freeBytes)} of ${formatBytes(totalBytes)} are free`;
  if (freeBytes >= memoryBytesWarning) return ok(subject, finding);
  const remedy = 'unload models (hearsay stop MODEL), close other programs, or use models of other nodes';
  return {subject, grade: freeBytes < memoryBytesProblem ? 'problem' : 'warning', finding, remedy};
}

function judgeFolders(folders: readonly FolderFacts[]): readonly Check[] {
  const bad = folders.flatMap(({path, kind, state, reason}): Check[] => {
    const because = reason === undefined ? '' : ` (${reason})`;
    if (state === 'readable' || (state === 'missing' && kind !== 'wanted')) return [];
    const finding = `${path} ${state === 'missing' ? 'does not exist' : `cannot be used${because}`}`;
    const remedy = kind === 'data' ? 'correct its owner and mode, or set data_dir' : 'correct its path, owner or mode';
    return [{subject: 'folders', grade: kind === 'other' ? 'warning' : 'problem', finding, remedy}];
  });
  if (bad.length > 0) return bad;
  const there = folders.filter(({state}) => state === 'readable').length;
  return [ok('folders', `${there} can be used`)];
}

function judgeOrphans(orphans: readonly number[]): Check {
  const subject = 'orphans';
  if (orphans.length === 0) return ok(subject, 'no engine runs without its daemon');
  const finding = `engines of a daemon that is gone still run (${orphans.map(pid => `process ${pid}`).join(', ')})`;
  return {
    subject,
    grade: 'problem',
    finding,
    remedy: `the next hearsay serve ends them, or: kill ${orphans.join(' ')}`,
  };
}

/** Nodes never compare their clocks, but passes and invites end by the clock of whoever judges them. */
function judgeClock({wallMs, lastStartMs}: HealthFacts['clock']): Check {
  const subject = 'clock';
  const now = new Date(wallMs).toISOString();
  const remedy = 'set it, best by NTP: passes and invites end by this clock';
  if (wallMs < epochMs) return {subject, grade: 'problem', finding: `says ${now}, so it was never set`, remedy};
  if (lastStartMs <= wallMs + clockMsMax) return ok(subject, `says ${now}`);
  const finding = `says ${now}, and this node was started before at ${new Date(lastStartMs).toISOString()}`;
  return {subject, grade: 'warning', finding, remedy};
}
