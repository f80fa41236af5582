import {createHash} from 'node:crypto';
import {encodeBeat, encodeInventory, encodeLeave} from '@hearsay/core';
import type {
  AgedRecord,
  Beat,
  EngineBeat,
  EngineHost,
  EngineSnapshot,
  HardwareFacts,
  LearnedFacts,
} from '@hearsay/core';
import type {Mesh, ModelFacts, ModelStore, NodeFlags, SelfFacts, SignedRecord, StoredModel} from '@hearsay/core';
import type {ClusterConfig, ClusterDeps} from './join-cluster.ts';
import {standingOf} from './standing-of.ts';
import type {Experience} from './start-experience.ts';

/** Changes of state are told at once, but not more often than this: five records a second is what gossip bears well. */
const announceGapMs = 200;

/** Free memory is measured again after this long: reading it for every request would cost more than ranking does. */
const memoryAgeMsMax = 1000;

/** A signed beat may be handed out again while nothing has changed and it is younger than this. */
const reuseMs = 500;

/** With answers it may be this old when only the load has changed: less than gossip takes to tell of that. */
const recentMs = 50;

/** Tells the mesh what this node has: a beat every few seconds, one at every change, a leave at the end. */
export interface Announcer extends AsyncDisposable {
  /** This node as it is right now; never from gossip. */
  readonly self: () => SelfFacts;
  /** The encoded inventory that the newest beat names. */
  readonly inventory: () => Uint8Array;
  /** A signed beat with the present load, for handing out with an answer. */
  readonly fresh: () => Promise<SignedRecord>;
  /**
   * As `fresh`, or the last one, if that was signed a moment ago and every engine had slots free or had none as it has
   * now: to sign one for each of hundreds of requests in a second would cost more than the rest of each. Never one that
   * still counts a request that has run for longer than that moment: whoever asks would take its slot for taken.
   */
  readonly recent: (ended?: Ended) => Promise<SignedRecord>;
  /** Of a request that is taken right now. */
  readonly begun: () => Ended;
  /** The newest record signed so far, for the exchange with peers; undefined before the first. */
  readonly last: () => AgedRecord | undefined;
  /** Something has changed: announce soon. */
  readonly touch: () => void;
}

/** A request that has ended here: since when records have counted it. */
interface Ended {
  readonly loadSeq: number;
  readonly sinceMs: number;
}

/** What a beat says that the announcer does not know by itself. */
interface Telling {
  readonly nodeCount: () => number;
  /** What the owner has said about this node. */
  readonly ownFlags: () => NodeFlags;
}

/** Period of the beat for a mesh of that many nodes: clamp(2, N/10, 30) seconds. */
function beatPeriodMs(nodes: number): number {
  return Math.min(30, Math.max(2, nodes / 10)) * 1000;
}

/** What a beat says of an inventory: enough to see that it has changed. */
export function inventoryDigest(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex').slice(0, 16);
}

export interface AnnouncerDeps extends Pick<ClusterDeps, 'clock' | 'log'> {
  readonly mesh: Pick<Mesh, 'self' | 'publish' | 'sign'>;
  readonly engines: Pick<EngineHost, 'engines' | 'hardware' | 'loadSeq' | 'memory' | 'onChange'>;
  readonly models: Pick<ModelStore, 'list' | 'onChange'>;
  readonly experience: Pick<Experience, 'told' | 'onNews'>;
}

/** What a node is called, and what it does for others. */
type AnnouncerConfig = Pick<ClusterConfig, 'nodeName' | 'version' | 'boot' | 'contextMax' | 'role'>;

export function startAnnouncer(config: AnnouncerConfig, deps: AnnouncerDeps, telling: Telling): Announcer {
  const {nodeCount, ownFlags} = telling;
  const {clock, engines, experience, log, mesh, models} = deps;
  const servesOthers = config.role !== 'use';
  let sequence = 0;
  let closed = false;
  let last: {record: SignedRecord; atMs: number; loadSeq: number; standing: string} | undefined;
  let signed: {record: SignedRecord; loadSeq: number; inventory: string; atMs: number} | undefined;
  let inventory: CurrentInventory | undefined;
  let hardware: HardwareFacts | undefined;
  let measured: {memory: Beat['memory']; atMs: number} | undefined;
  let changes = 0;
  let timer: Disposable | undefined;
  let dueAtMs = Infinity;
  let announcedAtMs = -Infinity;
  let isLeftOutTold = false;
  let announcing: Promise<void> = Promise.resolve();

  const contextTold = config.contextMax === undefined ? {} : {contextMax: config.contextMax};

  function currentInventory(): CurrentInventory {
    if (!inventory) {
      const usable = models.list().filter(({problem}) => problem === undefined);
      const facts = usable.map(model => withLearned(model, experience.told(model.digest)));
      const told = {...contextTold, ...(hardware ? {hardware} : {})};
      const bytes = encodeInventory({models: servesOthers ? facts : [], ...told}, noteLeftOut);
      inventory = {models: facts, bytes, digest: inventoryDigest(bytes)};
    }
    return inventory;
  }

  function noteLeftOut(count: number): void {
    if (!isLeftOutTold) log('warn', 'this node has more models than one may tell others of', {leftOut: count});
    isLeftOutTold = true;
  }

  function memory(): Beat['memory'] {
    const nowMs = clock.monotonicMs();
    if (measured === undefined || nowMs - measured.atMs > memoryAgeMsMax) {
      measured = {memory: engines.memory(), atMs: nowMs};
      lookAtHardware();
    }
    return measured.memory;
  }

  /** Devices are only known when their drivers have woken, and a card may be plugged in or fail later. */
  function lookAtHardware(): void {
    const found = engines.hardware();
    if (isSameHardware(hardware, found)) return;
    hardware = found;
    inventory = undefined;
  }

  function describe(): Beat {
    const memoryNow = memory(); // may change the inventory
    return {
      kind: 'beat',
      node: mesh.self,
      name: config.nodeName,
      version: config.version,
      boot: config.boot,
      sequence,
      ttlMs: 3 * beatPeriodMs(nodeCount()) + 1000,
      loadSeq: engines.loadSeq(),
      inventory: currentInventory().digest,
      engines: describeEngines(engines.engines(), models.list, clock.wallMs()),
      memory: memoryNow,
      flags: closed ? {...ownFlags(), draining: true} : ownFlags(),
    };
  }

  async function fresh(): Promise<SignedRecord> {
    memory();
    const loadSeq = engines.loadSeq();
    const digest = currentInventory().digest;
    const nowMs = clock.monotonicMs();
    if (signed?.loadSeq === loadSeq && signed.inventory === digest && nowMs - signed.atMs < reuseMs)
      return signed.record;
    sequence += 1;
    const beat = describe();
    const described = changes;
    const record = await mesh.sign(encodeBeat(servesOthers ? beat : {...beat, engines: []}));
    last = {record, atMs: nowMs, loadSeq, standing: standingOf(beat)};
    // Flags have no number.
    signed = described === changes ? {record, atMs: nowMs, loadSeq, inventory: digest} : undefined;
    return record;
  }

  async function recent(ended?: Ended): Promise<SignedRecord> {
    const nowMs = clock.monotonicMs();
    if (last === undefined || nowMs - last.atMs >= recentMs) return fresh();
    const isCounted = ended && last.loadSeq >= ended.loadSeq && nowMs - ended.sinceMs >= recentMs;
    return isCounted !== true && last.standing === standingOf(describe()) ? last.record : fresh();
  }

  async function announce(): Promise<void> {
    announcedAtMs = clock.monotonicMs();
    // Whoever was given the last one may have spread it, and gossip sends nothing twice, whoever sent it first.
    signed = undefined;
    try {
      await mesh.publish(await fresh());
    } catch (error) {
      log('warn', 'could not announce this node', {error: String(error)});
    }
  }

  /** One timer serves both: the next regular beat, or an earlier one after a change. */
  function schedule(afterMs: number): void {
    timer?.[Symbol.dispose]();
    dueAtMs = clock.monotonicMs() + afterMs;
    timer = clock.after(afterMs, () => {
      if (closed) return;
      announcing = announce();
      schedule(beatPeriodMs(nodeCount()));
    });
  }

  function touch(): void {
    if (closed) return;
    changes += 1;
    signed = undefined;
    const nowMs = clock.monotonicMs();
    const wantedAtMs = Math.max(nowMs, announcedAtMs + announceGapMs);
    if (dueAtMs > wantedAtMs) schedule(wantedAtMs - nowMs); // else it is announced soon enough: slots change often
  }

  function inventoryChanged(): void {
    inventory = undefined;
    touch();
  }

  const watches = [engines.onChange(touch), models.onChange(inventoryChanged)];
  experience.onNews(inventoryChanged);
  schedule(0);

  return {
    self: () => ({beat: describe(), models: currentInventory().models, hardware, contextMax: config.contextMax}),
    inventory: () => currentInventory().bytes,
    fresh,
    recent,
    begun: () => ({loadSeq: engines.loadSeq(), sinceMs: clock.monotonicMs()}),
    last: () => last && {record: last.record, ageMs: clock.monotonicMs() - last.atMs},
    touch,
    async [Symbol.asyncDispose]() {
      closed = true;
      timer?.[Symbol.dispose]();
      for (const watch of watches) watch[Symbol.dispose]();
      await announcing;
      sequence += 1;
      const {boot} = config;
      await mesh.publish(await mesh.sign(encodeLeave({kind: 'leave', node: mesh.self, boot, sequence})));
    },
  };
}

interface CurrentInventory {
  readonly models: readonly ModelFacts[];
  readonly bytes: Uint8Array;
  readonly digest: string;
}

function isSameHardware(a: HardwareFacts | undefined, b: HardwareFacts | undefined): boolean {
  return (
    a?.memoryBytesPerSecond === b?.memoryBytesPerSecond &&
    a?.operationsPerSecond === b?.operationsPerSecond &&
    a?.diskBytesPerSecond === b?.diskBytesPerSecond
  );
}

function withLearned(model: ModelFacts, learned: LearnedFacts | undefined): ModelFacts {
  return learned === undefined ? model : {...model, learned};
}

/** Engines that others can make use of. The digest is the store's of today: it may have been proven since the start. */
function describeEngines(
  snapshots: readonly EngineSnapshot[],
  list: () => readonly StoredModel[],
  wallMs: number,
): readonly EngineBeat[] {
  const stored = snapshots.length === 0 ? [] : list(); // at rest there is nothing to look for in a long list
  return snapshots.flatMap((snapshot): readonly EngineBeat[] => {
    const model = stored.find(({key}) => key === snapshot.key);
    const readiness = readinessOf(snapshot);
    if (!model || !readiness) return [];
    const {readySinceWallMs, unloadInMs} = snapshot;
    return [
      {
        digest: model.digest,
        readiness,
        slots: snapshot.slots,
        busy: snapshot.busy,
        queued: snapshot.queued,
        waitMs: snapshot.waitMs,
        context: snapshot.context,
        ageSeconds: readySinceWallMs === undefined ? 0 : Math.max(0, Math.round((wallMs - readySinceWallMs) / 1000)),
        untilSeconds: unloadInMs === undefined || unloadInMs === Infinity ? -1 : Math.round(unloadInMs / 1000),
        sizeBytes: model.sizeBytes,
      },
    ];
  });
}

function readinessOf({state}: EngineSnapshot): EngineBeat['readiness'] | undefined {
  switch (state) {
    case 'ready':
      return 'ready';
    case 'starting':
    case 'backing off':
      return 'loading';
    case 'stopped':
    case 'draining':
    case 'stopping':
    case 'broken':
      return undefined;
  }
}
