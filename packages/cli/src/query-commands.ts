import {parseDaemonUrl} from './addresses.ts';
import {DaemonClient} from './daemon-client.ts';
import type {Answered} from './daemon-client.ts';
import {enginesSchema, modelsSchema, nodesSchema, statusSchema} from './daemon-reports.ts';
import {readRunningDaemon} from './running-daemon.ts';
import type {Variables} from './system.ts';
import {engineNotes, engineTable, modelNotes, modelTable, nodeNotes, nodeTable, statusText} from './tables.ts';
import type {Terminal} from './terminal.ts';

/** The commands that ask a running daemon. */

export interface Query {
  readonly client: DaemonClient;
  readonly terminal: Terminal;
  readonly json: boolean;
}

/** The daemon to ask: the flag, else HEARSAY_HOST, else the one that runs on the data folder, else the default port. */
export async function daemonUrl(
  host: string | undefined,
  variables: Variables,
  dataFolder: () => Promise<string>,
): Promise<string> {
  const named = host ?? (variables['HEARSAY_HOST'] || undefined);
  if (named !== undefined) return parseDaemonUrl(named);
  const running = await readRunningDaemon(await dataFolder());
  return parseDaemonUrl(running?.url ?? '127.0.0.1');
}

export async function showStatus(query: Query): Promise<void> {
  const answer = await query.client.list('/hearsay/v1/status', statusSchema);
  show(query, answer, statusText(answer.report));
}

export async function showNodes(query: Query): Promise<void> {
  const answer = await query.client.list('/hearsay/v1/nodes', nodesSchema);
  show(query, answer, nodeTable(answer.report.nodes), nodeNotes(answer.report.nodes));
}

export async function showEngines(query: Query): Promise<void> {
  const answer = await query.client.list('/hearsay/v1/engines', enginesSchema);
  show(query, answer, engineTable(answer.report.engines), engineNotes(answer.report.engines));
}

export async function showModels(query: Query): Promise<void> {
  const answer = await query.client.list('/hearsay/v1/models', modelsSchema);
  show(query, answer, modelTable(answer.report.models), modelNotes(answer.report.models));
}

function show({terminal, json}: Query, answer: Answered<unknown>, text: string, notes = ''): void {
  terminal.out(json ? `${JSON.stringify(answer.json, undefined, 2)}\n` : text);
  if (!json) terminal.error(notes);
}
