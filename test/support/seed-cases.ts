import type {Candidate} from '@hearsay/core';
import {candidate} from './builders.ts';

/** One promise of the seed rule: who of these nodes gets the request. */
export interface SeedCase {
  /** The lines of the requirements that it shows. */
  readonly lines: string;
  readonly words: string;
  readonly candidates: readonly Candidate[];
  readonly winner: string;
}

const me = (changes: Partial<Candidate> = {}): Candidate => candidate('S', {self: true, roundTripMs: 0, ...changes});
const GB = 1e9;

/** `S` is the node where the request entered. Tested with both spreads, and printed in docs/routing.md. */
export const seedCases: readonly SeedCase[] = [
  {
    lines: 'S20',
    words: 'a node that has the model loaded wins, though it is small and far',
    candidates: [me({roomBytes: 128 * GB}), candidate('A', {state: 'ready', roomBytes: 0, roundTripMs: 300})],
    winner: 'A',
  },
  {
    lines: 'R31, S21, S33',
    words: 'the busy node that has it loaded wins over an idle one that only has the file',
    candidates: [
      me({roomBytes: 128 * GB}),
      candidate('A', {state: 'ready', busy: 4, queued: 8, running: 4, waitMs: 90_000}),
    ],
    winner: 'A',
  },
  {
    lines: 'S72',
    words: 'loaded wins over being loaded, and that over the file',
    candidates: [me(), candidate('L', {state: 'loading', waitMs: 9000}), candidate('R', {state: 'ready'})],
    winner: 'R',
  },
  {
    lines: 'S22, S23',
    words: 'the file on a small node wins over a roomy node that would have to pull it',
    candidates: [me({state: 'absent', roomBytes: 128 * GB}), candidate('A', {roomBytes: 4 * GB})],
    winner: 'A',
  },
  {
    lines: 'S24',
    words: 'a node that has the file but on which it does not fit loses to one that must pull it',
    candidates: [candidate('A', {exclusion: 'too large', roomBytes: 4 * GB}), me({state: 'absent'})],
    winner: 'S',
  },
  {
    lines: 'S25, S31',
    words: 'of nodes that have the file the one with the most room wins',
    candidates: [me({roomBytes: 16 * GB}), candidate('A', {roomBytes: 128 * GB}), candidate('B', {roomBytes: 64 * GB})],
    winner: 'A',
  },
  {
    lines: 'S26',
    words: 'ties go to the node where the request entered',
    candidates: [candidate('A'), me(), candidate('B')],
    winner: 'S',
  },
  {
    lines: 'S26',
    words: 'also between two that have it loaded, whoever has more free slots',
    candidates: [candidate('A', {state: 'ready', freeSlots: 4}), me({state: 'ready', freeSlots: 1})],
    winner: 'S',
  },
  {
    lines: 'S28',
    words: 'unknown memory fits anything and comes last by room',
    candidates: [me({roomBytes: 0}), candidate('A', {roomBytes: GB})],
    winner: 'A',
  },
  {
    lines: 'S29',
    words: 'a model that nobody stores goes where the most room is',
    candidates: [me({state: 'absent', roomBytes: 8 * GB}), candidate('A', {state: 'absent', roomBytes: 9 * GB})],
    winner: 'A',
  },
  {
    lines: 'S32',
    words: 'the only node that has the file gets it, though another has more room',
    candidates: [candidate('A', {state: 'absent', roomBytes: 128 * GB}), me({roomBytes: 16 * GB})],
    winner: 'S',
  },
];

/** The table for people. */
export function seedTable(): string {
  const rows = seedCases.map(({lines, words, candidates, winner}) => {
    const nodes = candidates.map(describe).join(' · ');
    return `| ${lines} | ${words} | ${nodes} | ${winner} |`;
  });
  return ['| line | promise | nodes | goes to |', '|---|---|---|---|', ...rows, ''].join('\n');
}

function describe(node: Candidate): string {
  const load = node.queued > 0 ? `, ${node.busy} running, ${node.queued} waiting` : '';
  const out = node.exclusion === undefined ? '' : `, ${node.exclusion}`;
  return `${node.name}: ${node.state}${load}${out}, room ${node.roomBytes / GB} GB`;
}
