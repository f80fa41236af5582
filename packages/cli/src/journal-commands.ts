import type {Clock} from '@hearsay/core';
import {Fault} from '@hearsay/core';
import {requestsSchema, routeSchema, whySchema} from './journal-reports.ts';
import type {Query} from './query-commands.ts';
import {replayText, requestTable, routeText, whyText} from './why-text.ts';

/** The commands that ask a daemon about requests. */

/** How often `-f` asks for what is new. */
const followEveryMs = 500;

/** Lines shown unless `-n` says otherwise. */
const shownRequests = 20;

export interface RequestsOptions {
  readonly follow: boolean;
  readonly count: number | undefined;
}

/** Lists the newest requests, the last one at the bottom; with `follow` goes on with each one that ends. */
export async function showRequests(query: Query, options: RequestsOptions, clock: Clock): Promise<void> {
  const {client, terminal, json} = query;
  const path = `/hearsay/v1/requests?limit=${options.count ?? shownRequests}`;
  const {json: body, report} = await client.list(path, requestsSchema);
  const listed = report.requests.toReversed();
  if (json && !options.follow) return terminal.out(`${JSON.stringify(body, undefined, 2)}\n`);
  if (json) for (const request of listed) terminal.out(`${JSON.stringify(request)}\n`);
  else terminal.out(requestTable(listed, clock.wallMs()));
  let after = Math.max(0, ...listed.map(({change}) => change));
  while (options.follow) {
    await clock.sleep(followEveryMs);
    const {requests} = (await client.list(`/hearsay/v1/requests?after=${after}`, requestsSchema)).report;
    const ended = requests.filter(({outcome}) => outcome !== undefined);
    for (const request of ended) {
      terminal.out(json ? `${JSON.stringify(request)}\n` : requestTable([request], clock.wallMs(), false));
    }
    after = Math.max(after, ...requests.map(({change}) => change));
  }
}

export async function showWhy(id: string, {client, terminal, json}: Query): Promise<void> {
  const {json: body, report} = await client.list(`/hearsay/v1/why/${encodeURIComponent(id)}`, whySchema);
  terminal.out(json ? `${JSON.stringify(body, undefined, 2)}\n` : whyText(report));
}

/** Fails when a decision that is made again from the recorded facts comes out differently. */
export async function replayRequest(id: string, {client, terminal, json}: Query): Promise<void> {
  const {report} = await client.list(`/hearsay/v1/why/${encodeURIComponent(id)}`, whySchema);
  const {replay} = report;
  terminal.out(json ? `${JSON.stringify(replay, undefined, 2)}\n` : replayText(replay));
  if (replay.length === 0) {
    throw new Fault('NO_CANDIDATE', 'this node decided nothing for that request; ask the node where it entered');
  }
  if (!replay.every(({agrees}) => agrees)) throw new Fault('INTERNAL', 'a decision comes out differently now');
}

export interface RouteOptions {
  readonly promptBytes: string | undefined;
  readonly policy: string | undefined;
  readonly needs: string | undefined;
}

export async function showRoute(model: string, options: RouteOptions, {client, terminal, json}: Query): Promise<void> {
  const question = new URLSearchParams({model});
  if (options.promptBytes !== undefined) question.set('prompt_bytes', options.promptBytes);
  if (options.policy !== undefined) question.set('policy', options.policy);
  if (options.needs !== undefined) question.set('needs', options.needs);
  const {json: body, report} = await client.list(`/hearsay/v1/route?${question}`, routeSchema);
  terminal.out(json ? `${JSON.stringify(body, undefined, 2)}\n` : routeText(report));
}
