import type {EngineReport, MeshReport, ModelReport, NodeReport, StatusReport} from '@hearsay/core';
import {formatBytes, isProven, resolveModel, shortDigest, shortNode, toNamedModel} from '@hearsay/core';
import {formatAgo, formatFromNow, formatSpan, loadingText} from './human.ts';

/** Reports as text for people: upper-case headers, four spaces between columns, no borders. All are pure. */

/** `hearsay ps`. The NODE column appears when something is loaded elsewhere (S52). */
export function engineTable(engines: readonly EngineReport[]): string {
  const columns: readonly Column<EngineReport>[] = [
    {title: 'NAME', cell: engine => engine.name},
    {title: 'ID', cell: engine => shortDigest(engine.digest)},
    {title: 'SIZE', cell: engine => formatBytes(engine.sizeBytes)},
    {title: 'PROCESSOR', cell: engine => engine.processor},
    {title: 'CONTEXT', cell: engine => String(engine.context)},
    {title: 'STARTED', cell: started},
    {title: 'NODE', cell: engine => engine.node},
    {title: 'UNTIL', cell: until},
  ];
  const allHere = engines.every(engine => engine.node === 'local');
  return table(engines, allHere ? columns.filter(column => column.title !== 'NODE') : columns);
}

/** `hearsay models`. */
export function modelTable(models: readonly ModelReport[]): string {
  return table(models, [
    {title: 'NAME', cell: model => model.name},
    {title: 'ID', cell: model => (isProven(model.digest) ? shortDigest(model.digest) : '-')},
    {title: 'SIZE', cell: model => formatBytes(model.sizeBytes)},
    {title: 'QUANT', cell: model => model.quant || '-'},
    {title: 'CONTEXT', cell: model => (model.contextMax > 0 ? String(model.contextMax) : '-')},
    {title: 'STATUS', cell: modelStatus},
    {title: 'NODES', cell: model => model.nodes.map(node => (node.local ? 'local' : node.name)).join(', ')},
  ]);
}

/** `hearsay nodes`, this one first. */
export function nodeTable(nodes: readonly NodeReport[]): string {
  const sorted = nodes.toSorted((a, b) => Number(b.local) - Number(a.local));
  return table(sorted, [
    {title: 'NAME', cell: node => node.name || '-'},
    {title: 'ID', cell: node => shortNode(node.id)},
    {title: 'ADDRESS', cell: node => node.address || '-'},
    {title: 'STATE', cell: node => node.state},
    {title: 'PATH', cell: node => (node.relayedBy === undefined ? node.path : `relayed by ${node.relayedBy}`)},
    {
      title: 'RTT',
      cell: ({local, roundTripMs}) => (local || roundTripMs === undefined ? '-' : formatRoundTrip(roundTripMs)),
    },
    {title: 'MEMORY', cell: memory},
    {title: 'LOADED', cell: node => node.loaded.join(', ') || '-'},
  ]);
}

/** `hearsay members`: this node first, then the invites that can still be used. */
export function memberTable({members, invites, openTo, mode}: MeshReport): string {
  if (mode === 'lan') {
    const where = openTo.length === 0 ? 'this machine only' : `this LAN: ${openTo.join(', ')}`;
    return `this mesh has no members, it is open to ${where}; to close it: hearsay lock\n`;
  }
  const list = table(members, [
    {title: 'NAME', cell: member => member.name || '-'},
    {title: 'ID', cell: member => shortNode(member.id)},
    {title: 'ROLE', cell: member => member.role},
    {title: 'STATE', cell: ({state, connected}) => (state === 'member' ? (connected ? 'here' : 'away') : state)},
    {
      title: 'PASS ENDS',
      cell: ({expiresSeconds: seconds}) => (seconds === undefined ? '-' : formatFromNow(seconds)),
    },
  ]);
  if (invites.length === 0) return list;
  const open = table(invites, [
    {title: 'INVITE', cell: invite => invite.id},
    {title: 'ROLE', cell: invite => invite.role},
    {title: 'ENDS', cell: invite => formatFromNow(invite.expiresSeconds)},
  ]);
  return `${list}\n${open}`;
}

/** `hearsay network ls`. */
export function networkTable({networks}: MeshReport): string {
  return table(networks, [
    {title: 'INTERFACE', cell: network => network.interface},
    {title: 'SUBNETS', cell: network => network.subnets.join(', ') || '-'},
    {title: 'ROUTER', cell: network => network.gateway ?? '-'},
    {title: 'KIND', cell: network => network.kind},
    {title: 'TRUSTED', cell: ({trusted, present}) => (trusted ? (present ? 'yes' : 'yes, not here now') : 'no')},
  ]);
}

/** `hearsay status`. */
export function statusText(status: StatusReport): string {
  const lines: readonly (readonly [string, string])[] = [
    ['name', status.name],
    ['id', status.id],
    ['version', status.version],
    ['gateway', status.gateway],
    ['mesh', `${status.mesh}, ${status.peers === 1 ? '1 peer' : `${status.peers} peers`}${roleWords(status)}`],
    ['addresses', status.meshAddresses.join(', ') || '-'],
    ['engine', status.engine],
    ['models', `${status.models}, ${status.loaded} loaded`],
    ['requests', `${status.inFlight} running`],
    ['state', stateWords(status)],
    ['up', formatSpan(status.uptimeSeconds)],
    ['process', String(status.processId)],
    ['data', status.dataFolder],
  ];
  return lines.map(([key, value]) => `${`${key}:`.padEnd(14)}${printable(value)}\n`).join('');
}

function roleWords({role}: StatusReport): string {
  if (role === 'use') return ' (uses them, and runs nothing for them)';
  return role === 'serve' ? ' (runs what they ask, and asks none of them)' : '';
}

function stateWords({state, policies}: StatusReport): string {
  const rules = policies === 0 ? '' : `, ${policies === 1 ? '1 policy' : `${policies} policies`} set`;
  const undo = {draining: 'undrain', paused: 'resume'}[state];
  return `${state}${undo === undefined ? '' : ` (takes no new requests; to change: hearsay ${undo})`}${rules}`;
}

/** `hearsay engine ls`. */
export function engineListTable(engines: readonly {source: string; version: string; command: string}[]): string {
  return table(engines, [
    {title: 'VERSION', cell: engine => engine.version},
    {title: 'SOURCE', cell: engine => engine.source},
    {title: 'COMMAND', cell: engine => engine.command},
  ]);
}

/** What the columns have no room for, one line each: why something is broken, unusable, or not admitted. */
export function engineNotes(engines: readonly EngineReport[]): string {
  return notes([
    ...engines.map((engine): readonly [string, string | undefined] => [engine.name, engine.failure]),
    ...[...new Map(engines.map(engine => [engine.nodeId, engine])).values()].map(
      ({nodeName, nodeState}): readonly [string, string | undefined] => [
        nodeName,
        nodeState === undefined || nodeState === 'alive' ? undefined : `${nodeState}, takes no new requests`,
      ],
    ),
  ]);
}

export function modelNotes(models: readonly ModelReport[]): string {
  const known = models.filter(({problem}) => problem === undefined);
  return notes(models.map(model => [model.name, model.problem ?? describeConflict(model, known)]));
}

/** One name for different bytes (law 6): how to ask for this one, and whether the name alone does. */
function describeConflict(model: ModelReport, known: readonly ModelReport[]): string | undefined {
  if (!model.conflict) return undefined;
  const alike = known.filter(({conflict}) => conflict).map(toNamedModel);
  const meant = resolveModel(model.name, alike);
  const isMeant = meant.kind === 'found' && meant.digests.includes(model.digest);
  const alone = isMeant ? 'the name alone means this one here; always' : 'the name alone means the other one here;';
  return `there are different models of this name; ${alone} ask for it as ${model.name}@${model.digest.slice(0, 19)}`;
}

export function nodeNotes(nodes: readonly NodeReport[]): string {
  return notes(nodes.map(node => [node.name || shortNode(node.id), node.note]));
}

/**
 * Text from other machines without what a terminal would obey: control characters, and marks that turn the direction of
 * writing.
 */
export function printable(text: string): string {
  return text.replaceAll(/\p{C}/gu, '?');
}

interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => string;
}

function table<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): string {
  return textTable(rows, columns, true);
}

export function textTable<Row>(rows: readonly Row[], columns: readonly Column<Row>[], withHeader: boolean): string {
  const lines = [
    ...(withHeader ? [columns.map(column => column.title)] : []),
    ...rows.map(row => columns.map(column => printable(column.cell(row)))),
  ];
  const widths = columns.map((_, index) => Math.max(...lines.map(cells => cells[index]?.length ?? 0)));
  return lines
    .map(
      cells =>
        `${cells
          .map((cell, i) => cell.padEnd((widths[i] ?? 0) + 4))
          .join('')
          .trimEnd()}\n`,
    )
    .join('');
}

function started(engine: EngineReport): string {
  if (engine.state === 'loading') return loadingText(engine.loadedShare, engine.loadingSecondsLeft);
  if (engine.state !== 'ready') return engine.state;
  return engine.startedSecondsAgo === undefined ? '-' : formatAgo(engine.startedSecondsAgo);
}

/** A busy engine is not unloaded, whatever its keep-alive; only an idle one without an end stays for ever. */
function until(engine: EngineReport): string {
  if (engine.state !== 'ready') return '-';
  if (engine.untilSeconds !== undefined) return formatFromNow(engine.untilSeconds);
  return engine.busy > 0 ? 'in use' : 'Forever';
}

function modelStatus(model: ModelReport): string {
  if (model.problem !== undefined) return 'unusable';
  const stored = model.hashed === undefined ? 'stored' : `hashing ${Math.floor(model.hashed * 100)}%`;
  const words = [
    model.status === 'unloaded' ? stored : model.status,
    model.conflict ? 'conflict' : '',
    model.demo ? 'demo' : '',
  ];
  return words.filter(word => word !== '').join(', ');
}

function formatRoundTrip(ms: number): string {
  return `${ms.toFixed(1)} ms`;
}

function memory({memoryFreeBytes, memoryTotalBytes}: NodeReport): string {
  if (memoryTotalBytes === 0) return '-';
  return `${formatBytes(memoryFreeBytes)} of ${formatBytes(memoryTotalBytes)} free`;
}

function notes(entries: readonly (readonly [name: string, text: string | undefined])[]): string {
  return entries
    .filter(([, text]) => text !== undefined && text !== '')
    .map(([name, text = '']) => `${printable(name)}: ${text.split('\n').map(printable).join('\n    ')}\n`)
    .join('');
}
