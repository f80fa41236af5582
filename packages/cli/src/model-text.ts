import {formatBytes, isProven} from '@hearsay/core';
import type {EngineDetails, ModelReport} from '@hearsay/core';
import type {EngineOutcome} from './control-reports.ts';
import {formatAgo, formatFromNow, loadingText} from './human.ts';
import {printable} from './tables.ts';

/** `hearsay show`: one model and its engines, as text for people. All are pure. */

export function modelText(asked: string, model: ModelReport | undefined, outcomes: readonly EngineOutcome[]): string {
  const facts = model === undefined ? [['name', asked] as const] : modelFacts(model);
  return [...facts, ...outcomes.flatMap(nodeFacts)].map(([key, value]) => line(key, value)).join('');
}

/** `ready`, `loading 40%, about 12 seconds left`. */
export function engineState({state, loadedShare, remainingMs}: EngineDetails): string {
  return state === 'starting' ? loadingText(loadedShare, remainingMs && remainingMs / 1000) : state;
}

type Line = readonly [key: string, value: string];

function line(key: string, value: string): string {
  const title = key === '' ? '' : `${printable(key)}:`;
  const [first = '', ...rest] = value.split('\n').map(printable);
  return [`${title.padEnd(14)}${first}`, ...rest.map(text => `${' '.repeat(14)}${text}`), ''].join('\n');
}

function modelFacts(model: ModelReport): readonly Line[] {
  const others = model.names.filter(name => name !== model.name);
  return [
    ['name', model.name],
    ...(others.length > 0 ? [['also', others.join(', ')] as const] : []),
    ['digest', isProven(model.digest) ? model.digest : 'not proven yet'],
    ['size', formatBytes(model.sizeBytes)],
    ['architecture', [model.architecture, model.quant].filter(word => word !== '').join(', ') || '-'],
    ['parameters', model.parameters > 0 ? count(model.parameters) : '-'],
    ['context', model.contextMax > 0 ? `${model.contextMax} tokens trained` : '-'],
    ['can do', model.capabilities.join(', ') || '-'],
    ...(model.problem === undefined ? [] : [['problem', model.problem] as const]),
  ];
}

function nodeFacts({name, local, engine, refused}: EngineOutcome): readonly Line[] {
  const where = local ? `${name} (this node)` : name;
  if (refused !== undefined) return [['node', `${where}: ${refused}`]];
  if (engine === undefined) return [['node', `${where}: stored, not loaded`]];
  const {slots, busy, queued, context, readySeconds, untilSeconds, failure} = engine;
  return [
    ['node', `${where}: ${engineState(engine)}`],
    ['', `${slots} ${slots === 1 ? 'slot' : 'slots'} of ${context} tokens, ${busy} busy, ${queued} waiting`],
    ...(readySeconds === undefined ? [] : [['', `loaded ${formatAgo(readySeconds)}`] as const]),
    ...(untilSeconds === undefined ? [] : [['', `unloaded ${formatFromNow(untilSeconds)}`] as const]),
    ...(failure === undefined ? [] : [['', failure] as const]),
  ];
}

/** `393.9 thousand`, `8.0 billion`. */
function count(parameters: number): string {
  if (parameters >= 1e9) return `${(parameters / 1e9).toFixed(1)} billion`;
  if (parameters >= 1e6) return `${(parameters / 1e6).toFixed(1)} million`;
  return `${(parameters / 1e3).toFixed(1)} thousand`;
}
