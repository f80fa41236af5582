import {measureDecisions} from './route-simulator/measure-decisions.ts';
import {simulate} from './route-simulator/simulate.ts';
import type {Outcome, Scenario} from './route-simulator/simulate.ts';

/**
 * `npm run bench:route`: whole meshes in simulated time, on the real `rank`, beside what others do; then how long one
 * choice takes. The same seeds give the same table. Ends with the goals, and fails when one is missed.
 *
 * `--seeds N` averages over more; `--only WORD` runs the parts whose title contains it.
 */

const option = (name: string): string | undefined => {
  const index = process.argv.indexOf(name);
  return index < 0 ? undefined : process.argv[index + 1];
};
const seeds = Number(option('--seeds') ?? 2);
const only = option('--only') ?? '';

interface Row {
  readonly label: string;
  readonly scenario: Omit<Scenario, 'seed'>;
}

interface Means {
  readonly p95: number;
  readonly mean: number;
}

interface Goal {
  readonly words: string;
  readonly value: number;
  readonly atMost: number;
  /** The same figure of something that does nothing: when it is over the goal too, only the machine was measured. */
  readonly floor: number;
}

const goals: Goal[] = [];
/** Two measurements of nothing but the machine differ by so much at their slowest hundredth. */
const noiseFactor = 2;
/** What machines guess of their own speed is off by so much (sigma of the logarithm), until they have measured it. */
const guessError = 0.3;
const others = ['random', 'roundRobin', 'leastOutstanding', 'points'] as const;

function rulesFor(base: Omit<Scenario, 'seed' | 'rule'>): readonly Row[] {
  return [
    ...others.map(rule => ({label: rule, scenario: {...base, rule}})),
    {label: 'seed rule, fresh facts', scenario: {...base, rule: 'seed'}},
    {label: 'cost, no guesses', scenario: {...base, rule: 'cost'}},
    {label: 'cost', scenario: {...base, rule: 'cost', guessError}},
    {label: 'cost, perfect information', scenario: {...base, rule: 'perfect'}},
  ];
}

part('five nodes, 0.3 requests/s, 1 h', rulesFor({cluster: 'five', rate: 0.3, seconds: 3600}));

part('twenty nodes, 2 requests/s, 30 min', rulesFor({cluster: 'twenty', rate: 2, seconds: 1800}), results => {
  const p95 = (label: string): number => results.get(label)?.p95 ?? Number.NaN;
  goal('twenty nodes: p95 to the seed rule', p95('cost') / p95('seed rule, fresh facts'), 0.1);
  goal('the same without any guess', p95('cost, no guesses') / p95('seed rule, fresh facts'), 0.1);
  goal('twenty nodes: p95 to perfect information', p95('cost') / p95('cost, perfect information'), 1.5);
});

const fifty = {cluster: 'fifty', rate: 8, seconds: 900} as const;
part('fifty nodes, 8 requests/s, 15 min', [
  {label: 'points', scenario: {...fifty, rule: 'points'}},
  {label: 'seed rule, fresh facts', scenario: {...fifty, rule: 'seed'}},
  {label: 'cost', scenario: {...fifty, rule: 'cost', guessError}},
]);

const crowded = {cluster: 'twenty', rule: 'cost', rate: 4, seconds: 1500, guessError} as const;
part(
  'old gossip: twenty nodes, 4 requests/s',
  [2, 10, 30].map(gossipSeconds => ({
    label: `cost, a beat every ${gossipSeconds} s`,
    scenario: {...crowded, gossipSeconds},
  })),
  results => {
    const mean = (seconds: number): number => results.get(`cost, a beat every ${seconds} s`)?.mean ?? Number.NaN;
    goal('a beat every 30 s instead of 2 s, mean', mean(30) / mean(2), 1.2);
  },
);

part(
  'the limit of the seed rule: a common model loaded on an office PC, an idle desktop beside it',
  [0.03, 0.3].flatMap(rate =>
    (['seed', 'cost'] as const).map(rule => ({
      label: `${rule}, ${rate}/s`,
      scenario: {
        ...({cluster: 'five', rule, rate, seconds: 3600, only: 1, guessError} as const),
        preload: [[3, 1]] as const,
      },
    })),
  ),
);

const roaming = {cluster: 'twenty', rule: 'cost', rate: 3, seconds: 1800, loyalty: 0.3, guessError} as const;
part(
  'sessions that roam (30 % stay): who has read the prompt?',
  (['none', 'own', 'sketches', 'exact'] as const).map(prefix => ({
    label: `cost, prefixes: ${prefix}`,
    scenario: {...roaming, prefix},
  })),
);

part('two fast nodes sleep for 5 min each: twenty nodes, 2 requests/s', [
  {
    label: 'cost',
    scenario: {
      ...({cluster: 'twenty', rule: 'cost', rate: 2, seconds: 1500, guessError} as const),
      asleep: [
        [0, 600, 900],
        [2, 700, 1000],
      ],
    },
  },
]);

if ('decision'.includes(only)) {
  console.log('\n## one decision, from the view to whom to ask and why');
  for (const [nodes, rounds, atMost] of [
    [10, 20_000, 50],
    [100, 10_000, 150],
    [1000, 5000, 500],
  ] as const) {
    // Of five goes the one in which the machine itself was quietest; the decision has no say in that.
    const goes = Array.from({length: 5}, () => measureDecisions(nodes, rounds / 5));
    const [quietest] = goes.toSorted((a, b) => a.floor.p99 - b.floor.p99);
    if (!quietest) throw new RangeError('nothing was measured');
    const {decision, floor} = quietest;
    const cells = [decision, floor].map(({p50, p99}) => `p50 ${p50.toFixed(1)}, p99 ${p99.toFixed(1)}`);
    console.log(`${String(nodes).padStart(5)} nodes, µs: ${cells[0]}; a fixed loop of that length: ${cells[1]}`);
    goal(`decision p50 with ${nodes} nodes, µs`, decision.p50, atMost);
    goal(`decision p99 with ${nodes} nodes, µs`, decision.p99, atMost, floor.p99);
  }
}

console.log('\n## goals');
for (const each of goals) {
  console.log(`${verdict(each).padEnd(6)} ${each.words}: ${each.value.toPrecision(3)} (at most ${each.atMost})`);
}
process.exitCode = goals.some(each => verdict(each) === 'MISSED') ? 1 : 0;

/** `noisy`: nobody can tell on this machine now, and only because a loop that does nothing is over the goal as well. */
function verdict({value, atMost, floor}: Goal): 'met' | 'MISSED' | 'noisy' {
  if (value <= atMost) return 'met';
  return floor > atMost && value <= noiseFactor * floor ? 'noisy' : 'MISSED';
}

function part(title: string, rows: readonly Row[], judge?: (results: ReadonlyMap<string, Means>) => void): void {
  if (!title.includes(only)) return;
  console.log(`\n## ${title}; ${seeds} seeds; seconds to the first byte, and to the last`);
  const head = ['done', 'left', 'p50', 'p95', 'p99', 'mean', 'end50', 'end95', 'tok/s', 'hit', 'loads', 'busy', 'lost'];
  console.log(''.padEnd(27) + head.map(text => text.padStart(7)).join(''));
  const results = new Map<string, Means>();
  for (const {label, scenario} of rows) {
    const outcomes = Array.from({length: seeds}, (_, index) => simulate({...scenario, seed: index + 1}));
    const over = (value: (outcome: Outcome) => number): number =>
      outcomes.reduce((sum, outcome) => sum + value(outcome), 0) / outcomes.length;
    const p95 = over(({firstBytes}) => quantile(firstBytes, 0.95));
    const mean = over(({firstBytes}) => firstBytes.reduce((sum, value) => sum + value, 0) / firstBytes.length);
    const cells = [
      over(({done}) => done).toFixed(0),
      over(({unfinished}) => unfinished).toFixed(0),
      over(({firstBytes}) => quantile(firstBytes, 0.5)).toFixed(2),
      p95.toFixed(2),
      over(({firstBytes}) => quantile(firstBytes, 0.99)).toFixed(1),
      mean.toFixed(2),
      over(({completions}) => quantile(completions, 0.5)).toFixed(1),
      over(({completions}) => quantile(completions, 0.95)).toFixed(1),
      over(({tokensPerSecond}) => tokensPerSecond).toFixed(0),
      over(({hitShare}) => hitShare).toFixed(2),
      over(({loads}) => loads).toFixed(0),
      over(({busyPerRequest}) => busyPerRequest).toFixed(3),
      over(({lostOffers}) => lostOffers).toFixed(0),
    ];
    console.log(label.padEnd(27) + cells.map(text => text.padStart(7)).join(''));
    results.set(label, {p95, mean});
  }
  judge?.(results);
}

function goal(words: string, value: number, atMost: number, floor = 0): void {
  goals.push({words, value, atMost, floor});
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}
