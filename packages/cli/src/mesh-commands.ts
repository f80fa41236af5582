import {Option} from 'commander';
import type {Command} from 'commander';
import type {InviteReport, MeshReport} from '@hearsay/core';
import {Fault} from '@hearsay/core';
import {z} from 'zod';
import {parseDuration} from './duration.ts';
import {formatSpan} from './human.ts';
import {inviteSchema, meshSchema, revokedSchema} from './mesh-reports.ts';
import type {Query} from './query-commands.ts';
import {memberTable, networkTable, printable} from './tables.ts';

const inviteFlags = z.object({
  keeper: z.boolean().optional(),
  life: z.string().optional(),
  qr: z.boolean().optional(),
});

type Ask = (command: Command) => Promise<Query>;

/** The commands on who may be in the mesh. All talk to the daemon of this machine. */
export function addMesh(program: Command, ask: Ask): void {
  const host = new Option('--host <url>', 'the daemon to ask: host, :port, host:port or a URL (default: HEARSAY_HOST)');
  const json = new Option('--json', "the daemon's answer as JSON");
  const invite = program
    .command('invite')
    .description('print a code that lets one node into this closed mesh, once')
    .option('--keeper', 'the new member may also invite, renew and revoke')
    .option('--life <duration>', 'how long the code can be used, such as 30m (default: 24h)')
    .option('--qr', 'draw the code as a QR code too, to be photographed from the screen');
  invite.addOption(host).addOption(json);
  invite.action(async () => {
    const {keeper = false, life, qr = false} = inviteFlags.parse(invite.opts());
    const body = {role: keeper ? 'keeper' : 'member', ...(life !== undefined && {lifeSeconds: secondsOf(life)})};
    const query = await ask(invite);
    const {json: raw, report} = await query.client.post('/hearsay/v1/mesh/invite', body, inviteSchema);
    query.terminal.out(query.json ? pretty(raw) : `hearsay join ${report.code ?? ''}\n`);
    if (query.json) return;
    if (qr) query.terminal.out(await (await import('./draw-qr.ts')).drawQr(report.code ?? ''));
    query.terminal.error(describeInvite(report));
  });
  addAct(program, {name: 'join', argument: 'code', about: 'join a closed mesh with a code'}, ask, joined);
  addAct(program, {name: 'lock', about: 'close this mesh: who is here stays, others need an invite'}, ask, locked);
  const force = {name: 'force', about: 'also when the others have no other keeper'};
  addAct(
    program,
    {name: 'leave', about: 'leave the closed mesh and be open to the LAN again', flag: force},
    ask,
    opened,
  );
  const revoke = program.command('revoke').description('put a member out for ever, or end an open invite');
  revoke.argument('<node-or-invite>').addOption(host);
  revoke.action(async (which: string) => {
    const {client, terminal} = await ask(revoke);
    const {report} = await client.post('/hearsay/v1/mesh/revoke', {which}, revokedSchema);
    terminal.out(`revoked ${printable(report.revoked)}\n`);
  });
  const members = program.command('members').description('list the members of this mesh and the open invites');
  members.addOption(host).addOption(json);
  members.action(async () => {
    const query = await ask(members);
    show(query, await query.client.list('/hearsay/v1/mesh', meshSchema), memberTable);
  });
  addNetwork(program, ask, {host, json});
}

function addNetwork(program: Command, ask: Ask, options: {readonly host: Option; readonly json: Option}): void {
  const network = program.command('network').description('which networks this node trusts');
  const list = network.command('ls').description('list the networks of this machine');
  list.addOption(options.host).addOption(options.json);
  list.action(async () => {
    const query = await ask(list);
    show(query, await query.client.list('/hearsay/v1/mesh', meshSchema), networkTable);
  });
  const about = {argument: 'interface-or-subnet', path: 'trust'};
  addAct(network, {name: 'trust', about: 'admit machines of a network', ...about}, ask, opened);
  addAct(
    network,
    {...about, name: 'forget', about: 'admit machines of a network no longer', path: 'forget'},
    ask,
    opened,
  );
}

interface Act {
  readonly name: string;
  readonly about: string;
  readonly argument?: string;
  readonly path?: string;
  /** An option that is sent as true when it is given. */
  readonly flag?: {readonly name: string; readonly about: string};
}

/** A command that changes something and answers with how things stand then. */
function addAct(
  parent: Command,
  {name, about, argument, path = name, flag}: Act,
  ask: Ask,
  say: (report: MeshReport) => string,
) {
  const command = parent.command(name).description(about);
  command.option('--host <url>', 'the daemon to ask').option('--json', "the daemon's answer as JSON");
  if (flag !== undefined) command.option(`--${flag.name}`, flag.about);
  if (argument !== undefined) command.argument(`<${argument}>`);
  command.action(async (given: unknown) => {
    const query = await ask(command);
    const text = typeof given === 'string' ? given : '';
    const asked = argument === undefined ? {} : {[argument === 'code' ? 'code' : 'which']: text};
    const body =
      flag !== undefined && command.getOptionValue(flag.name) === true ? {...asked, [flag.name]: true} : asked;
    show(query, await query.client.post(`/hearsay/v1/mesh/${path}`, body, meshSchema), say);
  });
}

function show(
  query: Query,
  answer: {readonly json: unknown; readonly report: MeshReport},
  say: (r: MeshReport) => string,
) {
  query.terminal.out(query.json ? pretty(answer.json) : say(answer.report));
  if (!query.json) query.terminal.error(answer.report.warnings.map(text => `note: ${printable(text)}\n`).join(''));
}

function joined({mesh, members}: MeshReport): string {
  return `this node belongs to mesh ${printable(mesh)} now, as ${members[0]?.role ?? 'member'}; see: hearsay nodes\n`;
}

function locked({members}: MeshReport): string {
  const names = members.filter(({local}) => !local).map(({name}) => name);
  const stay = names.length === 0 ? 'nobody else was here' : `these stay: ${names.join(', ')}`;
  return `this mesh is closed now; ${printable(stay)}. Let others in with: hearsay invite\n`;
}

function opened({mode, openTo}: MeshReport): string {
  if (mode === 'members') return 'this mesh is closed: its members are admitted on every network\n';
  return openTo.length === 0 ? 'open to this machine only\n' : `open to this LAN: ${openTo.join(', ')}\n`;
}

function describeInvite({id, role, expiresSeconds}: InviteReport): string {
  const life = formatSpan(expiresSeconds);
  return `Run that on the other machine within ${life}; it works once and makes it a ${role}. To end it: hearsay revoke ${id}\n`;
}

function secondsOf(life: string): number {
  const ms = parseDuration(life);
  if (ms !== undefined && ms > 0 && ms < Infinity) return ms / 1000;
  throw new Fault('BAD_CONFIG', `--life must be a duration such as 30m or 24h, not ${JSON.stringify(life)}`);
}

function pretty(json: unknown): string {
  return `${JSON.stringify(json, undefined, 2)}\n`;
}
