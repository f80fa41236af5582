import {z} from 'zod';
import type {Query} from './query-commands.ts';
import {textTable} from './tables.ts';

/** The commands about keys of applications. */

interface KeyRow {
  readonly name: string;
  readonly createdWallMs: number;
  readonly models: readonly string[] | undefined;
  readonly workloads: readonly string[] | undefined;
  readonly nodes: readonly string[] | undefined;
  readonly policies: readonly string[] | undefined;
  readonly policy?: string | null | undefined;
  readonly perMinute?: number | null | undefined;
  readonly admin: boolean;
}

const names = z
  .array(z.string())
  .nullish()
  .transform(list => list ?? undefined);

const key = z.object({
  name: z.string(),
  createdWallMs: z.number(),
  models: names,
  workloads: names,
  nodes: names,
  policies: names,
  policy: z.string().nullish(),
  perMinute: z.number().nullish(),
  admin: z.boolean(),
});
export const createdKeySchema: z.ZodType<{readonly name: string; readonly secret: string}> = key.extend({
  secret: z.string(),
});
export const keysSchema: z.ZodType<{readonly keys: readonly KeyRow[]}> = z.object({keys: z.array(key)});
export const revokedKeySchema: z.ZodType<{readonly revoked: boolean}> = z.object({revoked: z.boolean()});

/** The secret alone goes to stdout, for scripts. */
export async function createKey(wish: object, {client, terminal, json}: Query): Promise<void> {
  const {json: body, report} = await client.post('/hearsay/v1/keys/create', wish, createdKeySchema);
  if (json) return terminal.out(`${JSON.stringify(body, undefined, 2)}\n`);
  terminal.error(`the key of ${report.name}; it is not shown again. Send it as Authorization: Bearer, or x-api-key:\n`);
  terminal.out(`${report.secret}\n`);
}

export async function listKeys({client, terminal, json}: Query): Promise<void> {
  const {json: body, report} = await client.list('/hearsay/v1/keys', keysSchema);
  if (json) return terminal.out(`${JSON.stringify(body, undefined, 2)}\n`);
  const columns = [
    {title: 'NAME', cell: (row: KeyRow) => row.name},
    {title: 'CREATED', cell: (row: KeyRow) => new Date(row.createdWallMs).toISOString().slice(0, 10)},
    {title: 'MODELS', cell: (row: KeyRow) => listText(row.models)},
    {title: 'WORKLOADS', cell: (row: KeyRow) => listText(row.workloads)},
    {title: 'NODES', cell: (row: KeyRow) => listText(row.nodes)},
    {title: 'POLICIES', cell: (row: KeyRow) => listText(row.policies)},
    {title: 'POLICY', cell: (row: KeyRow) => row.policy ?? '-'},
    {title: 'RATE', cell: (row: KeyRow) => (typeof row.perMinute === 'number' ? `${row.perMinute}/min` : '-')},
    {title: 'ADMIN', cell: (row: KeyRow) => (row.admin ? 'yes' : '-')},
  ];
  terminal.out(textTable(report.keys, columns, true));
}

export async function revokeKey(name: string, {client, terminal}: Query): Promise<void> {
  await client.post('/hearsay/v1/keys/revoke', {name}, revokedKeySchema);
  terminal.error(`the key of ${name} is no longer let in\n`);
}

function listText(allowed: readonly string[] | undefined): string {
  if (allowed === undefined) return 'all';
  return allowed.length === 0 ? 'none' : allowed.join(',');
}
