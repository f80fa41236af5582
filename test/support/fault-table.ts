import {setMaxListeners} from 'node:events';
import type {ExecutionContext} from 'ava';
import test from 'ava';
import type {RequestSummary} from '@hearsay/core';
import {ask} from './ask.ts';
import type {AskedAnswer} from './ask.ts';
import type {Daemon} from './daemon.ts';
import {bodyOf, faultCases, faultFiles, faultSlots, lies, stalls} from './fault-cases.ts';
import type {FaultCase, FaultDialect, Place} from './fault-cases.ts';
import {isHeard, judge, judgeJournal} from './fault-judge.ts';
import {testCutLink} from './fault-link.ts';
import {childrenWith} from './processes.ts';
import {engines, requests, status} from './reports.ts';
import {scriptedEngine} from './scripted-engine.ts';
import {shared} from './shared.ts';
import {startTwoNodes} from './two-nodes.ts';
import type {TwoNodes} from './two-nodes.ts';
import {until} from './until.ts';

/** Cases that begin at the same time: nodes that share two cores with other tests must answer offers in time. */
const atOnceMax = 20;

/**
 * Everything that may go wrong with an answer, at every moment, at every endpoint of a dialect, streamed and whole, on
 * the node of the engine and from another one: the client gets a real status or the error of its dialect, and what it
 * has heard already once; the engine is asked once, no slot stays taken, and the journal says how it ended.
 */
export function testFaults(dialect: FaultDialect): void {
  const {name, endpoints} = dialect;
  const both = shared('two nodes, one with a scripted engine', async ends => {
    const {engine, variables} = scriptedEngine;
    return startTwoNodes(ends, faultFiles, {engine, variables: {...variables, ...faultSlots}});
  });

  test.serial.before('every endpoint answers', async t => {
    t.timeout(120_000);
    setMaxListeners(0);
    const fine = faultCases(endpoints, [{at: 'never', how: 'clean end'}], ['local', 'remote']);
    for (const each of fine) {
      const {status: code, text} = await askCase(both(), each).answer;
      t.is(code, 200, `${each.label}: ${text}`);
      if (each.isStream) t.regex(text, each.endpoint.stream?.endMark ?? /never/u, each.label);
    }
  });

  test.serial(`C51, R18, R19, R21: an engine that lies or hangs up, ${name}`, async t => {
    t.timeout(240_000);
    const cases = faultCases(endpoints, lies, ['local', 'remote']);
    const answers = await inTurns(cases, async each => askCase(both(), each).answer);
    for (const [index, each] of cases.entries()) judge(t, dialect, each, answers[index]);
    await judgeRest(t, both(), cases, answers);
  });

  test.serial(`R1, R3, R9, C6, C7, C67: clients that leave an engine that says nothing more, ${name}`, async t => {
    t.timeout(240_000);
    const before = await newestChange(both());
    // Who counts tokens does not wait for an engine that says nothing.
    const waiting = endpoints.filter(({estimates}) => estimates !== true);
    const cases = faultCases(waiting, stalls, ['local', 'remote']);
    const controller = new AbortController();
    const asked = await askUntilStuck(both(), cases, controller.signal);
    const ended = Promise.allSettled(asked.map(async ({answer}) => answer));
    controller.abort();
    for (const {status: how} of await ended) t.is(how, 'rejected');
    await until('no slot is taken', async () => isQuiet(both()));
    for (const place of ['local', 'remote'] as const) {
      const here = await requests(daemonAt(both(), place).url, before[place]);
      const outcomes = here.filter(isClients).map(({outcome}) => outcome);
      t.deepEqual(new Set(outcomes), new Set(['cancelled']), place);
      t.is(outcomes.length, cases.filter(each => each.place === place).length, place);
    }
    t.deepEqual(await timesAsked(both(), cases), new Set([1]));
  });

  test.serial(`S87, C51, C52: an engine that is killed, ${name}`, async t => {
    t.timeout(240_000);
    const cases = faultCases(endpoints, stalls, ['local', 'remote']);
    const asked = await askUntilStuck(both(), cases);
    for (const pid of childrenWith('scripted-engine', [both().holder.pid])) process.kill(pid, 'SIGKILL');
    const answers = await Promise.all(asked.map(async ({answer}) => answer));
    for (const [index, each] of cases.entries()) judge(t, dialect, each, answers[index]);
    await judgeRest(t, both(), cases, answers);
  });

  testCutLink(dialect);

  // The last one, because nothing of the node is left.
  test.serial(`S83, S84, S87: a node that is killed, ${name}`, async t => {
    t.timeout(240_000);
    const cases = faultCases(endpoints, stalls, ['remote']);
    const {holder, entry} = both();
    const fine = faultCases(endpoints, [{at: 'never', how: 'clean end'}], ['remote']);
    for (const each of fine) await askCase(both(), each).answer; // so that every model is loaded
    const asked = await askUntilStuck(both(), cases);
    holder.kill('SIGKILL');
    const answers = await Promise.all(asked.map(async ({answer}) => answer));
    for (const [index, each] of cases.entries()) judge(t, dialect, each, answers[index]);
    judgeJournal(t, await requests(entry.url), cases, answers);
    await until('nothing is in flight', async () => (await status(entry.url)).inFlight === 0);
    await until('no engine is left', () => childrenWith('scripted-engine', [holder.pid]).length === 0);
  });
}

function daemonAt({holder, entry}: TwoNodes, place: Place): Daemon {
  return place === 'local' ? holder : entry;
}

function askCase(nodes: TwoNodes, each: FaultCase, signal?: AbortSignal): ReturnType<typeof ask> {
  return ask(daemonAt(nodes, each.place).url + each.endpoint.path, bodyOf(each), signal);
}

/** The answers, in the order of the cases; only so many are asked for at the same time. */
async function inTurns<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<readonly R[]> {
  const results: R[] = [];
  const rest = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of rest) results[index] = await work(item);
  };
  await Promise.all(Array.from({length: atOnceMax}, worker));
  return results;
}

/** No slot stays taken, nothing was asked for twice, and the journal has it. */
async function judgeRest(
  t: ExecutionContext,
  nodes: TwoNodes,
  cases: readonly FaultCase[],
  answers: readonly AskedAnswer[],
): Promise<void> {
  await until('no slot is taken', async () => isQuiet(nodes));
  // A connection that breaks before there is an answer may have been stale, so that asking again is right.
  const mayBeStale = ({mishap: {at, how}}: FaultCase): boolean => at === 'before headers' && how === 'dies';
  const clear = cases.filter(each => !mayBeStale(each));
  for (const times of await timesAsked(nodes, clear)) t.is(times, 1, `an engine was asked ${times} times`);
  for (const place of ['local', 'remote'] as const) {
    const here = [...cases.entries()].filter(([, each]) => each.place === place);
    judgeJournal(
      t,
      await requests(daemonAt(nodes, place).url),
      here.map(([, each]) => each),
      here.flatMap(([index]) => answers[index] ?? []),
    );
  }
}

/** Asks for all of them, some at a time; each has come as far as it will. */
async function askUntilStuck(
  nodes: TwoNodes,
  cases: readonly FaultCase[],
  signal?: AbortSignal,
): Promise<readonly ReturnType<typeof ask>[]> {
  const all: ReturnType<typeof ask>[] = [];
  for (let from = 0; from < cases.length; from += atOnceMax) {
    const some = cases.slice(from, from + atOnceMax);
    const asked = some.map(each => askCase(nodes, each, signal));
    await untilStuck(nodes, some, asked);
    all.push(...asked);
  }
  return all;
}

/** Waits until every request has come as far as its engine lets it, and its client knows; says which have not. */
async function untilStuck(
  nodes: TwoNodes,
  cases: readonly FaultCase[],
  asked: readonly ReturnType<typeof ask>[],
): Promise<void> {
  let missing: readonly string[] = [];
  try {
    await until('all are stuck', async () => {
      const seen = await countAsked(nodes, cases);
      missing = cases
        .filter((each, index) => !seen.has(each.mishap.id) || !isHeard(each, asked[index]))
        .map(({label}) => label);
      return missing.length === 0;
    });
  } catch (cause) {
    const ended = asked.map(each => each.heard()).filter(text => text.includes('error'));
    throw new Error(`not stuck: ${missing.join('; ')}; ended: ${ended.join('; ')}`, {cause});
  }
}

/** The different numbers of times: one, for each case that the engines remember. */
async function timesAsked(nodes: TwoNodes, cases: readonly FaultCase[]): Promise<ReadonlySet<number>> {
  return new Set((await countAsked(nodes, cases)).values());
}

/** How often the engines that run now were asked for each case, as they say themselves. */
async function countAsked({holder}: TwoNodes, cases: readonly FaultCase[]): Promise<ReadonlyMap<string, number>> {
  const ids = new Set(cases.map(({mishap}) => mishap.id));
  const times = new Map<string, number>();
  for (const {name} of await engines(holder.url)) {
    const response = await fetch(`${holder.url}/lora-adapters?model=${name}`);
    const counts: {id: string; times: number}[] = await response.json();
    for (const {id, times: count} of counts) if (ids.has(id)) times.set(id, count);
  }
  return times;
}

/** Nobody holds a slot, waits for one, or is still being answered. */
async function isQuiet({holder, entry}: TwoNodes): Promise<boolean> {
  const loads = await Promise.all(
    [holder, entry].map(async ({url}) => [await status(url), await engines(url)] as const),
  );
  return loads.every(
    ([{inFlight}, all]) =>
      inFlight === 0 && all.filter(({node}) => node === 'local').every(({busy, queued}) => busy + queued === 0),
  );
}

/** A client's, and none of the looks at an engine. */
function isClients({role, endpoint}: RequestSummary): boolean {
  return role === 'entry' && endpoint !== '/lora-adapters';
}

async function newestChange(nodes: TwoNodes): Promise<Readonly<Record<Place, number>>> {
  const newest = async ({url}: Daemon): Promise<number> =>
    Math.max(0, ...(await requests(url)).map(({change}) => change));
  return {local: await newest(nodes.holder), remote: await newest(nodes.entry)};
}
