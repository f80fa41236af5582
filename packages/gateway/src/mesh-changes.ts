import type {Cluster, EngineReport, ModelReport, NodeReport} from '@hearsay/core';

/** Something that people are shown, and what has become of it. */
export interface MeshChange {
  readonly kind: 'node' | 'engine' | 'model';
  readonly change: 'appeared' | 'changed' | 'gone';
  /** As the lists of the admin API show it; of what is gone, as it was last. */
  readonly report: NodeReport | EngineReport | ModelReport;
}

interface Shown extends Omit<MeshChange, 'change'> {
  /** Everything about it that does not change by itself all the time. */
  readonly fingerprint: string;
}

/** Everything that is shown at one moment, by what it is. */
export type MeshPicture = ReadonlyMap<string, Shown>;

/** Ages, distances and shares: who wants to see them move asks for them. */
const restless: ReadonlySet<string> = new Set([
  'roundTripMs',
  'memoryFreeBytes',
  'startedSecondsAgo',
  'untilSeconds',
  'loadingSecondsLeft',
  'loadedShare',
  'hashed',
]);

export function pictureOf(cluster: Pick<Cluster, 'nodes' | 'engines' | 'models'>): MeshPicture {
  const nodes = cluster.nodes().map(report => shown('node', report.id, report));
  const engines = cluster.engines().map(report => shown('engine', `${report.nodeId} ${report.digest}`, report));
  const models = cluster.models().map(report => shown('model', `${report.digest} ${report.name}`, report));
  return new Map([...nodes, ...engines, ...models]);
}

/** Pure: what has happened between two moments. What is gone comes first, so that a name can be taken over. */
export function changesBetween(before: MeshPicture, after: MeshPicture): readonly MeshChange[] {
  const gone = [...before].filter(([key]) => !after.has(key)).map(([, was]) => changed(was, 'gone'));
  const others = [...after].flatMap(([key, is]) => {
    const was = before.get(key);
    if (was === undefined) return [changed(is, 'appeared')];
    return was.fingerprint === is.fingerprint ? [] : [changed(is, 'changed')];
  });
  return [...gone, ...others];
}

function shown(kind: Shown['kind'], id: string, report: Shown['report']): readonly [string, Shown] {
  const fingerprint = JSON.stringify(report, (name, value: unknown) => (restless.has(name) ? undefined : value));
  return [`${kind} ${id}`, {kind, report, fingerprint}];
}

function changed({kind, report}: Shown, change: MeshChange['change']): MeshChange {
  return {kind, change, report};
}
