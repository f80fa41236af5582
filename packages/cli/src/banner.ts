import type {MeshReport, ModelReport, NodeReport, StatusReport} from '@hearsay/core';
import {shortNode} from '@hearsay/core';
import {printable} from './tables.ts';

export interface BannerFacts {
  readonly status: StatusReport;
  readonly models: readonly ModelReport[];
  readonly nodes: readonly NodeReport[];
  /** Whether this machine can run its models itself. */
  readonly hasEngine: boolean;
  /** Programs of this machine need a key too. */
  readonly requireKey: boolean;
  /** Whose machines are admitted, and what somebody should look at. */
  readonly openness: Pick<MeshReport, 'mode' | 'openTo' | 'members' | 'warnings'>;
}

/** Names that fit on the screen; the rest is counted. */
const namesMax = 6;

/** What `hearsay serve` says when it runs. Pure; its last line says `ready`. */
export function banner({status, models, nodes, hasEngine, requireKey, openness}: BannerFacts): string {
  const lines = [
    `hearsay ${status.version}: node ${status.name} (${shortNode(status.id)})`,
    `  gateway   ${status.gateway}`,
    `  mesh      ${status.mesh}, ${describeOpenness(openness)}; ${describePeers(nodes)}`,
    `  engine    ${status.engine}`,
    ...describeModels(models).map((line, index) => `  ${index === 0 ? 'models' : '      '}    ${line}`),
    ...openness.warnings.map(warning => `  note      ${warning}`),
    ...describeTrial(status, hasEngine ? models : models.filter(isElsewhere), requireKey),
    `ready: ${status.gateway}`,
  ];
  return `${lines.map(printable).join('\n')}\n`;
}

function describeOpenness({mode, openTo, members}: BannerFacts['openness']): string {
  if (mode === 'members') return `closed, ${members.length === 1 ? '1 member' : `${members.length} members`}`;
  return openTo.length === 0
    ? 'open to this machine only'
    : `open to this LAN: ${openTo.join(', ')} (hearsay lock closes it)`;
}

function describePeers(nodes: readonly NodeReport[]): string {
  const names = nodes.filter(node => !node.local && node.state === 'alive').map(node => node.name);
  return names.length === 0 ? 'no peers so far' : `peers: ${enumerate(names)}`;
}

function describeModels(models: readonly ModelReport[]): readonly string[] {
  const usable = models.filter(model => model.problem === undefined);
  const unusable = models.length - usable.length;
  const hint = 'put .gguf files into a folder and start with: hearsay serve --models DIR';
  const real = usable.filter(model => !model.demo).map(model => model.name);
  const broken = unusable === 0 ? [] : [`${unusable} unusable; see: hearsay models`];
  if (real.length > 0) return [enumerate(real), ...broken];
  const [toy] = usable;
  if (toy === undefined) return ['none here', ...broken, `To have some, ${hint}`];
  return [
    `${toy.name}, a toy that ships with hearsay: it proves that everything works, and knows next to nothing`,
    ...broken,
    `For a real one, ${hint}`,
  ];
}

function describeTrial(
  {gateway}: StatusReport,
  models: readonly ModelReport[],
  requireKey: boolean,
): readonly string[] {
  const usable = models.filter(model => model.problem === undefined);
  const chat = usable.find(model => model.capabilities.includes('chat'));
  const model = chat ?? usable.find(({capabilities}) => capabilities.includes('completion'));
  if (model === undefined) return [];
  const [path, prompt] = chat
    ? ['chat/completions', {messages: [{role: 'user', content: 'Hello!'}]}]
    : ['completions', {prompt: 'Once upon a time', max_tokens: 64}];
  // A quote would end the shell's word.
  const body = JSON.stringify({model: model.name, stream: true, ...prompt}).replaceAll("'", String.raw`'\''`);
  const key = requireKey ? ` -H "authorization: Bearer $HEARSAY_KEY"` : '';
  return [`  try       curl -N ${gateway}/v1/${path}${key} -H 'content-type: application/json' -d '${body}'`];
}

function isElsewhere(model: ModelReport): boolean {
  return model.nodes.some(node => !node.local);
}

function enumerate(names: readonly string[]): string {
  const rest = names.length - namesMax;
  return rest > 0 ? `${names.slice(0, namesMax).join(', ')} and ${rest} more` : names.join(', ');
}
