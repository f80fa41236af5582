import {isNamed, parsePolicy} from '@hearsay/core';
import {z} from 'zod';
import {nodesSchema} from './daemon-reports.ts';
import type {Query} from './query-commands.ts';
import {textTable} from './tables.ts';

/** The commands by which the owner of a node says something about it. */

interface OperatorAnswer {
  readonly draining: boolean;
  readonly paused: boolean;
  readonly policies: readonly {readonly subject: string; readonly policy: string}[];
}

export const operatorSchema: z.ZodType<OperatorAnswer> = z.object({
  draining: z.boolean(),
  paused: z.boolean(),
  policies: z.array(z.object({subject: z.string(), policy: z.string()})),
});

const said: Readonly<Record<string, string>> = {
  drain: 'this node takes no new requests; those that run will end. To undo it: hearsay undrain',
  undrain: 'this node takes requests again',
  pause: 'this node takes no new requests and unloads what is idle. To undo it: hearsay resume',
  resume: 'this node takes requests again',
};

export async function changeNode(change: string, {client, terminal}: Query): Promise<void> {
  const {report} = await client.post('/hearsay/v1/operator/change', {change}, operatorSchema);
  const rest = report.draining ? 'it is still draining: hearsay undrain' : 'it is still paused: hearsay resume';
  const isStill = (change === 'resume' && report.draining) || (change === 'undrain' && report.paused);
  terminal.error(`${isStill ? rest : said[change]}\n`);
}

/** `parts` as written: `prefer=a,b`, `exclude=c`. */
export async function setPolicy(subject: string, parts: readonly string[], {client, terminal}: Query): Promise<void> {
  const {report} = await client.post('/hearsay/v1/policies', {subject, policy: parts.join(';')}, operatorSchema);
  const rule = report.policies.find(policy => policy.subject === subject.toLowerCase());
  const policy = rule?.policy ?? parts.join(';');
  terminal.error(`requests for ${subject} that enter at this node: ${policy}\n`);
  const {nodes} = (await client.list('/hearsay/v1/nodes', nodesSchema)).report;
  const strangers = nodesIn(policy).filter(
    word => !nodes.some(node => isNamed({...node, node: node.id}, word, node.local)),
  );
  if (strangers.length > 0) {
    const known = nodes.map(({name}) => name).join(', ');
    terminal.error(`note: no node is called ${strangers.join(' or ')} at the moment; there are ${known}\n`);
  }
}

/** Of a policy that has been accepted. */
function nodesIn(text: string): readonly string[] {
  const {placement, exclude} = parsePolicy(text);
  return [...(placement.kind === 'auto' ? [] : placement.nodes), ...exclude];
}

export async function removePolicy(subject: string, {client}: Query): Promise<void> {
  await client.post('/hearsay/v1/policies', {subject, policy: null}, operatorSchema);
}

export async function listPolicies({client, terminal, json}: Query): Promise<void> {
  const {json: body, report} = await client.list('/hearsay/v1/operator', operatorSchema);
  if (json) return terminal.out(`${JSON.stringify(body, undefined, 2)}\n`);
  const columns = [
    {title: 'FOR', cell: (rule: OperatorAnswer['policies'][number]) => rule.subject},
    {title: 'POLICY', cell: (rule: OperatorAnswer['policies'][number]) => rule.policy},
  ];
  terminal.out(textTable(report.policies, columns, true));
}
