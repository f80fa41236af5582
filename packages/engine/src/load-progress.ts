/** How far a llama-server in child mode says it is. */
export type LoadProgress =
  | {readonly kind: 'ready'}
  /** Share of everything that it loads, 0…1. */
  | {readonly kind: 'loading'; readonly share: number};

const statePrefix = 'cmd_child_to_router:state:';

/** Pure: what a line on stdout tells; undefined for every other line. Long lines come cut, so "ready" is no JSON. */
export function readProgress(line: string): LoadProgress | undefined {
  if (line.startsWith(`${statePrefix}{"state":"ready"`)) return {kind: 'ready'};
  if (!line.startsWith(`${statePrefix}{"state":"loading"`)) return undefined;
  const value = Number(/"value":([\d.eE+-]+)/u.exec(line)?.[1]);
  if (!(value >= 0 && value <= 1)) return undefined;
  const stages = [...(/"stages":\[([^\]]*)\]/u.exec(line)?.[1] ?? '').matchAll(/"([^"]*)"/gu)].map(([, name]) => name);
  const done = Math.max(0, stages.indexOf(/"current":"([^"]*)"/u.exec(line)?.[1]));
  return {kind: 'loading', share: (done + value) / Math.max(1, stages.length)};
}
