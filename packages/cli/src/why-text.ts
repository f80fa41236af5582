import {exclusionWords, formatBytes} from '@hearsay/core';
import type {ReplayedDecision} from '@hearsay/core';

import type {CostRow, EventRow, RankedRow, RouteAnswer, SummaryRow, WhyAnswer} from './journal-reports.ts';
import {printable, textTable} from './tables.ts';

/** Requests as text for people. All are pure. */

/** `hearsay requests`. */
export function requestTable(requests: readonly SummaryRow[], nowMs: number, withHeader: boolean = true): string {
  return textTable(
    requests,
    [
      {title: 'REQUEST', cell: row => row.id.slice(0, 12)},
      {title: 'CAME', cell: row => clockTime(row.atMs, nowMs)},
      {title: 'MODEL', cell: row => row.model || row.asked || '-'},
      {title: 'NODE', cell: row => (row.role === 'worker' ? 'here, for a peer' : (row.nodeName ?? '-'))},
      {title: 'TRIES', cell: row => String(row.attempts)},
      {title: 'FIRST', cell: row => milliseconds(row.firstByteMs)},
      {title: 'TOTAL', cell: row => milliseconds(row.totalMs)},
      {title: 'TOKENS', cell: tokens},
      {title: 'ENDED', cell: row => row.outcome ?? (row.position === undefined ? 'running' : waiting(row))},
      {title: 'REASON', cell: row => row.message ?? ''},
    ],
    withHeader,
  );
}

/** `hearsay why`: the whole story of one request, as one would tell it to a person. */
export function whyText({summary, steps, replay}: WhyAnswer): string {
  const names = new Map<number, string>();
  const lines = steps.flatMap(({sinceMs, event}) =>
    tell(event, names).map((line, index) => `${index === 0 ? stamp(sinceMs) : ' '.repeat(stampWidth)}${line}`),
  );
  return [headline(summary), origin(summary), '', ...lines, '', ...conclusion(summary), ...agreement(replay)]
    .map(line => `${printable(line).trimEnd()}\n`)
    .join('');
}

/** `hearsay route`. */
export function routeText({asked, model, policy, policyFrom, ranked, hosted}: RouteAnswer): string {
  const best = ranked[0]?.place === 0 ? ranked[0] : undefined;
  const called = asked === '' || asked === model ? model : `${asked} (${model})`;
  const leaving = hosted.filter(({waitMsMax}) => best === undefined || best.waitMs > waitMsMax);
  const verdict =
    leaving.length > 0
      ? `A request for ${called} would leave the mesh for ${namesOf(leaving)}: ${whyLeaving(best)}.`
      : best === undefined
        ? `A request for ${called} could run nowhere now.`
        : `A request for ${called} would go to ${nameOf(best)}: ${best.reason}.`;
  const limits = hosted.map(({name, waitMsMax}) => `${name} above ${milliseconds(waitMsMax)}`);
  const fallback =
    leaving.length > 0 || hosted.length === 0
      ? []
      : [`It would leave the mesh if no node could run it, or for a long wait: ${limits.join(', ')}.`];
  return [verdict, ...fallback, `Policy: ${policy} ${sourceWords(policyFrom)}.`, '', ...ranked.map(standing)]
    .map(line => `${printable(line).trimEnd()}\n`)
    .join('');
}

function namesOf(services: RouteAnswer['hosted']): string {
  return services.map(({name}) => name).join(' or ');
}

function whyLeaving(best: RankedRow | undefined): string {
  return best === undefined ? 'no node could run it now' : `the wait for a node is ${milliseconds(best.waitMs)}`;
}

/** `hearsay replay`. */
export function replayText(replay: readonly ReplayedDecision[]): string {
  const lines = replay.flatMap(({sinceMs, agrees, recorded, again, differences}) => [
    `${stamp(sinceMs)}${agrees ? 'agrees' : 'DIFFERS'}: ${recorded ?? 'nobody'} then, ${again ?? 'nobody'} now`,
    ...differences.map(difference => `${' '.repeat(stampWidth)}${difference}`),
  ]);
  return lines.map(line => `${printable(line)}\n`).join('');
}

function headline(summary: SummaryRow): string {
  const {id, model, asked, outcome, nodeName, attempts} = summary;
  const what = `Request ${id} for ${model || asked || 'the only model'}`;
  const where = nodeName === undefined ? '' : ` on ${nodeName}`;
  const tries = attempts > 1 ? ` at attempt ${attempts}` : '';
  return `${what}: ${outcome === undefined ? 'still running' : outcome}${where}${tries}.`;
}

function origin(summary: SummaryRow): string {
  const {role, from, bodyBytes, endpoint, policy, policyFrom, caller} = summary;
  const size = `${formatBytes(bodyBytes)} for ${endpoint}`;
  if (role === 'worker')
    return `It came from the node …${from?.slice(-8) ?? '?'}, ${size}; that node knows the whole story.`;
  const who = caller === undefined ? 'a client' : `the application ${caller}`;
  return `It came from ${who} of this node, ${size}, with the policy ${policy} ${sourceWords(policyFrom)}.`;
}

/** Who wished for the policy that held. */
function sourceWords(from: string | undefined): string {
  return (from !== undefined && sources[from]) || '(nobody asked for another)';
}

const sources: Readonly<Record<string, string>> = {
  operator: '(set by the owner of this node; see: hearsay policy ls)',
  header: '(from the header x-hearsay-policy)',
  provider: '(from the provider object of the request)',
  name: '(from the name model@node)',
  workload: '(from the workload)',
  key: '(from the key of the application)',
  config: '(from the config)',
  context: '(for the context that the client would like)',
};

/** One event in words; the first line gets the time. */
function tell(event: EventRow, names: Map<number, string>): readonly string[] {
  const who = (attempt: number): string => names.get(attempt) ?? 'this node';
  switch (event.kind) {
    case 'arrived':
      return ['it came in'];
    case 'planned':
      return []; // the opening lines have told it
    case 'decided': {
      const [best] = event.ranked;
      const count = event.ranked.length === 1 ? 'one node' : `${event.ranked.length} nodes`;
      const verdict = best?.place === 0 ? `${nameOf(best)} ranks first` : 'nobody else can be asked';
      return [`looked at ${count}: ${verdict}`, ...event.ranked.map(standing)];
    }
    case 'offered':
      names.set(event.attempt, event.nodeName);
      return [
        `asked ${event.nodeName}${event.force ? ' to queue it: nobody has a shorter wait' : ''}` +
          (event.estimateMs > 0 ? ` (expected wait ${milliseconds(event.estimateMs)})` : ''),
      ];
    case 'queued':
      return [
        `all are busy: it waits as number ${event.position} of this node's clients in turn, ${later(event.waitMs)}`,
      ];
    case 'accepted':
      return [`${who(event.attempt)} took it`];
    case 'busy':
      return [
        `${who(event.attempt)} said busy: ${busyWords[event.reason] ?? event.reason}; ${later(event.retryAfterMs)}`,
      ];
    case 'refused':
      return [`${who(event.attempt)} refused: ${event.message}`];
    case 'broke':
      return [
        `${who(event.attempt)} failed before any output: ${event.message}`,
        'nothing had reached the client, so another node may take it',
      ];
    case 'leaving':
      return [
        `no node of the mesh: ${event.reason}`,
        `its policy lets it leave, so that ${event.services.join(' or ')} is asked, outside the mesh`,
      ];
    case 'started':
      return [`first output from ${event.nodeName}; from here on it is never given to another node`];
    case 'ended':
      return [event.outcome === 'finished' ? 'the answer is whole' : `it ended: ${event.outcome}`];
  }
}

const busyWords: Readonly<Record<string, string>> = {
  slots: 'all its slots are in use',
  memory: 'there is no memory for the model now',
  loading: 'it is loading a model',
  draining: 'it takes no new requests',
};

function later(ms: number): string {
  return `a slot is expected in ${milliseconds(ms)}`;
}

/** A node with its place, or what speaks against it. */
function standing(node: RankedRow): string {
  const place = node.place === undefined ? 'out' : `${node.place + 1}.`;
  const facts = node.place === undefined ? whyOut(node) : [node.reason, ...factsOf(node)].join(', ');
  return `   ${place.padEnd(4)}${nameOf(node)}: ${facts}`;
}

function factsOf({state, freeSlots, queued, waitMs, roomBytes, roundTripMs, preferred, reason, cost}: RankedRow) {
  const isLoaded = state === 'ready' || state === 'loading';
  return [
    preferred && reason !== 'preferred' ? 'preferred' : '',
    reason.includes('loaded') ? '' : (stateWords[state] ?? state),
    isLoaded ? `${freeSlots} free slots` : `${formatBytes(roomBytes)} room`,
    queued > 0 ? `${queued} waiting` : '',
    waitMs > 0 ? `wait ${milliseconds(waitMs)}` : '',
    roundTripMs !== undefined && roundTripMs > 0 ? `${roundTripMs.toFixed(1)} ms away` : '',
    cost ? costWords(cost) : '',
  ].filter(text => text !== '');
}

/** Terms below this are not worth a word. */
const secondsMin = 0.0005;

/** The number that a node was ranked by, and what it is made of. */
function costWords({seconds, terms, sources: from}: CostRow): string {
  const parts = Object.entries(terms)
    .filter(([, value]) => value >= secondsMin)
    .map(([term, value]) => `${term} ${milliseconds(1000 * value)}${from[term] === 'guess' ? ' (guess)' : ''}`);
  return `costs ${milliseconds(1000 * seconds)}${parts.length > 0 ? ` = ${parts.join(' + ')}` : ''}`;
}

const stateWords: Readonly<Record<string, string>> = {
  ready: 'loaded',
  stored: 'on disk',
  absent: 'not on disk',
};

function whyOut({exclusion, reason}: RankedRow): string {
  return (exclusion !== undefined && exclusions[exclusion]) || reason;
}

/** A daemon may be newer than this command. */
const exclusions: Readonly<Record<string, string>> = exclusionWords;

function conclusion(summary: SummaryRow): readonly string[] {
  const {outcome, message, firstByteMs, estimateMs, totalMs, usage} = summary;
  const ended =
    outcome === undefined || outcome === 'finished' ? [] : [`It was ${outcome}: ${message ?? 'no reason known'}.`];
  if (firstByteMs === undefined) return ended;
  const estimate = `Expected wait ${milliseconds(estimateMs ?? 0)}; the first output really came after ${milliseconds(firstByteMs)}`;
  const whole = totalMs === undefined ? '' : `, the end after ${milliseconds(totalMs)}`;
  return [...ended, `${estimate}${whole}.`, ...(usage === undefined ? [] : [usageWords(usage)])];
}

function usageWords(usage: NonNullable<SummaryRow['usage']>): string {
  const {promptTokens = 0, cachedTokens = 0, outputTokens = 0, prefillTokensPerSecond, decodeTokensPerSecond} = usage;
  const read = `${promptTokens} tokens read${rate(prefillTokensPerSecond)}, ${cachedTokens} of them from the cache`;
  return `${read}; ${outputTokens} tokens written${rate(decodeTokensPerSecond)}.`;
}

function rate(perSecond: number | undefined): string {
  return perSecond === undefined ? '' : ` at ${perSecond.toFixed(perSecond < 10 ? 1 : 0)}/s`;
}

function agreement(replay: readonly ReplayedDecision[]): readonly string[] {
  if (replay.length === 0) return [];
  const differing = replay.filter(({agrees}) => !agrees);
  if (differing.length === 0) return ['Made again from the recorded facts, every decision comes out the same.'];
  return [`Made again, ${differing.length} of ${replay.length} decisions come out differently; see: hearsay replay.`];
}

function nameOf({name, self}: RankedRow): string {
  return self ? `${name} (this node)` : name;
}

const stampWidth = 12;

function stamp(sinceMs: number): string {
  return `+${milliseconds(sinceMs)}`.padEnd(stampWidth);
}

function milliseconds(ms: number | undefined): string {
  if (ms === undefined) return '-';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 60_000
    ? `${(ms / 1000).toFixed(1)} s`
    : `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

function waiting({position = 1, estimateMs}: SummaryRow): string {
  return `waiting, number ${position}, about ${milliseconds(estimateMs)}`;
}

function tokens({usage}: SummaryRow): string {
  return usage === undefined ? '-' : `${usage.promptTokens ?? '?'}+${usage.outputTokens ?? '?'}`;
}

/** `14:03:11` today, with the date before that. */
function clockTime(atMs: number, nowMs: number): string {
  const text = localTime(atMs);
  return nowMs - atMs < 20 * 3_600_000 ? text.slice(11) : text;
}

function localTime(atMs: number): string {
  const at = new Date(atMs);
  const iso = new Date(atMs - at.getTimezoneOffset() * 60_000).toISOString();
  return iso.slice(0, 19).replace('T', ' ');
}
