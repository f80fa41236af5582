import {randomUUID} from 'node:crypto';
import type {RequestSummary} from '@hearsay/core';
import {askAll} from './ask.ts';
import {startDaemon} from './daemon.ts';
import type {Daemon} from './daemon.ts';
import {bodyOf, faultCases, faultFiles, faultSlots, stalls} from './fault-cases.ts';
import type {FaultDialect} from './fault-cases.ts';
import {isHeard, judge, judgeJournal} from './fault-judge.ts';
import {modelFolder} from './models.ts';
import {curl, meetMsMax, netTest} from './net-trial.ts';
import {switchedLan} from './network-namespaces.ts';
import {scriptedEngine} from './scripted-engine.ts';
import {until} from './until.ts';

/** The cable of the serving node is pulled while it is in the middle of every kind of answer. */
export function testCutLink(dialect: FaultDialect): void {
  netTest(`S83, S84, S87: a link that is cut, ${dialect.name}`, async t => {
    t.timeout(240_000);
    const lan = switchedLan(t, 2);
    const common = {...scriptedEngine, mesh: `test-${randomUUID().slice(0, 8)}`, meshPort: 4328};
    const holder = await startDaemon(t, {
      ...common,
      variables: {...scriptedEngine.variables, ...faultSlots},
      models: [await modelFolder(t, ...faultFiles)],
      within: lan.within(0),
    });
    const entry = await startDaemon(t, {...common, within: lan.within(1)});
    await until(
      'the models are known',
      async () => (await curl(entry, '/v1/models')).split('"object":"model"').length - 1 === faultFiles.length,
      meetMsMax,
    );

    // An estimate needs no node.
    const needing = dialect.endpoints.filter(({estimates}) => estimates !== true);
    const cases = faultCases(needing, stalls, ['remote']);
    const posts = cases.map(each => ({url: entry.url + each.endpoint.path, body: bodyOf(each)}));
    const asked = askAll(lan.within(1), posts);
    await until(
      'all are stuck',
      async () =>
        cases.every((each, index) => isHeard(each, asked[index])) && (await asksSeen(holder)) === cases.length,
    );
    lan.cable(0, 'down');
    const answers = await Promise.all(asked.map(async ({answer}) => answer));
    for (const [index, each] of cases.entries()) judge(t, dialect, each, answers[index]);
    const journal: {requests: RequestSummary[]} = JSON.parse(await curl(entry, '/hearsay/v1/requests?limit=1000'));
    judgeJournal(t, journal.requests, cases, answers);
    await until('nothing is in flight', async () => (await inFlight(entry)) === 0);
    await until('no slot is taken', async () => (await busy(holder)) === 0);
  });
}

async function busy(daemon: Daemon): Promise<number> {
  const {engines}: {engines: {node: string; busy: number}[]} = JSON.parse(await curl(daemon, '/hearsay/v1/engines'));
  return engines.filter(({node}) => node === 'local').reduce((sum, engine) => sum + engine.busy, 0);
}

/** By its engines, as they say themselves. */
async function asksSeen(daemon: Daemon): Promise<number> {
  const names = faultFiles.map(file => file.replace('.gguf', ''));
  const seen = names.map(async name => {
    const ids: readonly unknown[] = JSON.parse(await curl(daemon, `/lora-adapters?model=${name}`));
    return ids.length;
  });
  return (await Promise.all(seen)).reduce((sum, count) => sum + count, 0);
}

async function inFlight(daemon: Daemon): Promise<number> {
  const {inFlight: count}: {inFlight: number} = JSON.parse(await curl(daemon, '/hearsay/v1/status'));
  return count;
}
