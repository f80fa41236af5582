import {describeError, Fault} from '@hearsay/core';
import type {Clock} from '@hearsay/core';
import {engineOutcomesSchema, logOutcomesSchema} from './control-reports.ts';
import type {EngineOutcome} from './control-reports.ts';
import {modelsSchema} from './daemon-reports.ts';
import {engineState, modelText} from './model-text.ts';
import type {Query} from './query-commands.ts';
import {printable} from './tables.ts';

/** The commands that do something with engines, on this node or another. */

export interface Target {
  readonly model: string;
  /** undefined: wherever it concerns. */
  readonly node: string | undefined;
  /** What people call the model, where that is not what is asked for. */
  readonly shown?: string;
}

export interface LoadFlags {
  readonly context: number | undefined;
  readonly slots: number | undefined;
  readonly keep: boolean;
  /** On so many nodes; undefined: on one. */
  readonly copies: number | undefined;
}

/** Between two looks at a load, and at a log that is followed. */
const lookMs = 400;

/** Waits until the model is loaded, on each node that was chosen for it. Says where, since the mesh chose. */
export async function loadModel(target: Target, flags: LoadFlags, query: Query, clock: Clock): Promise<void> {
  const {model, node} = target;
  const {report} = await query.client.post('/hearsay/v1/load', {model, node, ...flags}, engineOutcomesSchema);
  if (report.nodes.length === 0) {
    throw new Fault('NO_CANDIDATE', `no node could be asked to load ${target.model}`);
  }
  const ends = await Promise.allSettled(report.nodes.map(async outcome => untilLoaded(outcome, target, query, clock)));
  const [first, ...others] = ends.filter(end => end.status === 'rejected');
  for (const other of others) query.terminal.error(`${printable(describeError(other.reason))}\n`);
  if (first !== undefined) throw first.reason;
}

async function untilLoaded(outcome: EngineOutcome, target: Target, query: Query, clock: Clock): Promise<void> {
  const {client, terminal} = query;
  if (outcome.refused !== undefined) throw refused(outcome, outcome.refused);
  const path = queryPath('show', {model: target.model, node: outcome.id});
  for (let shown = ''; ; await clock.sleep(lookMs)) {
    const [now] = (await client.list(path, engineOutcomesSchema)).report.nodes;
    if (now?.engine?.state === 'ready') {
      const {slots, context} = now.engine; // as they came out: the model, and the memory, may allow less than was asked
      const size = `${slots === 1 ? '1 slot' : `${slots} slots`} of ${context} tokens`;
      return terminal.error(
        `${printable(target.shown ?? target.model)} is loaded on ${whereOf(outcome)}, with ${size}\n`,
      );
    }
    const failure = now?.refused ?? now?.engine?.failure;
    if (now?.engine?.state === 'broken') throw refused(outcome, failure ?? 'it is broken');
    if (now?.engine === undefined) throw refused(outcome, failure ?? 'somebody stopped it while it was loading');
    const line = `${engineState(now.engine)}\n`;
    if (terminal.isInteractive && line !== shown) terminal.error(line);
    shown = line;
  }
}

/** Says nothing when it worked (S57), and "stopping" when the end takes longer. */
export async function stopModel(target: Target, {client, terminal}: Query): Promise<void> {
  const {report} = await client.post('/hearsay/v1/stop', target, engineOutcomesSchema);
  const stopped = report.nodes.filter(({engine}) => engine !== undefined);
  for (const outcome of stopped) {
    if (outcome.engine?.state === 'stopping') terminal.error(`stopping on ${whereOf(outcome)}\n`);
  }
  const refusals = report.nodes.filter(outcome => outcome.refused !== undefined);
  const [first] = refusals;
  if (stopped.length === 0 && first === undefined) {
    const where = target.node === undefined ? 'any node' : `node ${target.node}`;
    throw new Fault('MODEL_NOT_FOUND', `no model ${target.model} is loaded on ${where}; see: hearsay ps`);
  }
  for (const outcome of refusals) terminal.error(`${whereOf(outcome)}: ${printable(outcome.refused ?? '')}\n`);
  if (stopped.length === 0 && first !== undefined) throw refused(first, first.refused ?? '');
}

/** One model: what it is, where it is, and how its engines are. */
export async function showModel(target: Target, {client, terminal, json}: Query): Promise<void> {
  const answer = await client.list(queryPath('show', target), engineOutcomesSchema);
  if (json) return terminal.out(`${JSON.stringify(answer.json, undefined, 2)}\n`);
  const {models} = (await client.list('/hearsay/v1/models', modelsSchema)).report;
  const digests = answer.report.nodes.map(({digest}) => digest);
  const model = models.find(({digest}) => digests.includes(digest));
  terminal.out(modelText(target.model, model, answer.report.nodes));
}

/** Prints what an engine has written, and with `follow` goes on until it is interrupted. */
export async function showLogs(target: Target, follow: boolean, query: Query, clock: Clock): Promise<void> {
  const {client, terminal} = query;
  let node = target.node;
  for (let after = 0, expected = 0; ;) {
    const path = queryPath('logs', {model: target.model, node, after: String(after)});
    const [outcome] = (await client.list(path, logOutcomesSchema)).report.nodes;
    if (outcome === undefined) throw new Fault('NO_CANDIDATE', `no node could be asked for the log of ${target.model}`);
    if (outcome.refused !== undefined) throw refused(outcome, outcome.refused);
    node = outcome.id; // a log that is followed is always that of one node
    if (outcome.first > expected && expected > 0)
      terminal.error(`(${outcome.first - expected} lines were overwritten)\n`);
    terminal.out(outcome.lines.map(line => `${printable(line)}\n`).join(''));
    after = outcome.next;
    expected = outcome.next;
    if (outcome.lines.length > 0) continue;
    if (!follow) {
      if (after === 0)
        terminal.error(`no engine of ${printable(target.model)} has run on ${whereOf(outcome)} lately\n`);
      return;
    }
    await clock.sleep(lookMs);
  }
}

function queryPath(name: string, fields: Readonly<Record<string, string | undefined>> | Target): string {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  return `/hearsay/v1/${name}?${new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString()}`;
}

function whereOf({local, name}: Pick<EngineOutcome, 'local' | 'name'>): string {
  return local ? 'this node' : printable(name);
}

function refused(outcome: Pick<EngineOutcome, 'local' | 'name'>, reason: string): Fault {
  return new Fault('ENGINE_FAILED', `${whereOf(outcome)}: ${reason}`);
}
