import type {EngineReport, ModelReport, NodeReport, RequestSummary, StatusReport, WhyReport} from '@hearsay/core';

async function ask<T>(url: string, path: string): Promise<T> {
  const response = await fetch(`${url}/hearsay/v1/${path}`);
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  const body: T = await response.json();
  return body;
}

export const status = async (url: string): Promise<StatusReport> => ask(url, 'status');

export async function nodes(url: string): Promise<readonly NodeReport[]> {
  return (await ask<{nodes: NodeReport[]}>(url, 'nodes')).nodes;
}

export async function engines(url: string): Promise<readonly EngineReport[]> {
  return (await ask<{engines: EngineReport[]}>(url, 'engines')).engines;
}

/** How many requests its own engines answer; the list has those of its peers too. */
export async function busyAt(url: string): Promise<number> {
  const own = (await engines(url)).filter(({node}) => node === 'local');
  return own.reduce((sum, {busy}) => sum + busy, 0);
}

export async function models(url: string): Promise<readonly ModelReport[]> {
  return (await ask<{models: ModelReport[]}>(url, 'models')).models;
}

/** Names of the nodes that can be asked from there, sorted. */
export async function aliveNames(url: string): Promise<readonly string[]> {
  return (await nodes(url))
    .filter(({state}) => state === 'alive')
    .map(({name}) => name)
    .toSorted();
}

export const why = async (url: string, id: string): Promise<WhyReport> => ask(url, `why/${id}`);

/** The newest requests in a journal, or those that have changed since. */
export async function requests(url: string, after?: number): Promise<readonly RequestSummary[]> {
  const since = after === undefined ? '' : `&after=${after}`;
  return (await ask<{requests: RequestSummary[]}>(url, `requests?limit=1000${since}`)).requests;
}
