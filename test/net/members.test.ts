import {randomUUID} from 'node:crypto';
import type {ExecutionContext} from 'ava';
import {startDaemon} from '../support/daemon.ts';
import type {Daemon, DaemonOptions} from '../support/daemon.ts';
import {alive, meetMsMax, netTest, nodes, says} from '../support/net-trial.ts';
import {modelFolder} from '../support/models.ts';
import {switchedLan} from '../support/network-namespaces.ts';
import type {SwitchedLan} from '../support/network-namespaces.ts';
import {timed, until} from '../support/until.ts';

async function starts(t: ExecutionContext, lan: SwitchedLan, names: readonly string[], more: DaemonOptions = {}) {
  const mesh = `test-${randomUUID().slice(0, 8)}`;
  const folder = await modelFolder(t, 'tiny-count-F16.gguf');
  return Promise.all(
    names.map(async (name, index) =>
      startDaemon(t, {
        name,
        mesh,
        meshPort: 4328,
        models: index === 0 ? [folder] : [],
        within: lan.within(index),
        ...more,
      }),
    ),
  );
}

netTest(
  'a locked mesh keeps who is there, lets in by invite only, and a revoked node is out everywhere at once',
  async t => {
    t.timeout(600_000);
    const lan = switchedLan(t, 4);
    const [a, b, c, d] = await starts(t, lan, ['a', 'b', 'c', 'd']);
    if (!a || !b || !c || !d) return t.fail();
    await d.stop();
    for (const daemon of [a, b, c]) {
      await until('all meet', async () => (await alive(daemon)) === 'a b c', meetMsMax);
    }
    t.regex(await says(a, 'lock'), /closed now; these stay: b, c|closed now; these stay: c, b/u);
    await until('they are still there', async () => (await alive(b)) === 'a b c', meetMsMax);
    const isHere = async (): Promise<boolean> => /b {4,}\S+ +member +here/u.test(await says(a, 'members'));
    await until('a sees it too', isHere, meetMsMax);

    const again = await startDaemon(t, {name: 'e', mesh: meshOf(a), meshPort: 4328, within: lan.within(3)});
    await until(
      'it is seen and told what to do',
      async () => {
        const seen = (await nodes(again)).filter(({state}) => state === 'seen');
        return seen.some(({note = ''}) => note.includes('hearsay join CODE'));
      },
      meetMsMax,
    );
    t.is(await alive(again), 'e');

    const code = /hearsay join (\S+)/u.exec(await says(a, 'invite'))?.[1] ?? '';
    const joined = await timed(async () => says(again, 'join', code));
    t.log(`join took ${Math.round(joined.ms)} ms`);
    for (const daemon of [a, b, c, again]) {
      await until('all have it', async () => (await alive(daemon)) === 'a b c e', meetMsMax);
    }
    const twice = await c.cli('join', code);
    t.regex(twice.stderr, /leave it first/u);

    await c.stop();
    await says(a, 'revoke', 'e');
    const gone = await timed(async () => {
      await until('a has put it out', async () => !(await alive(a)).includes('e'), 5000);
      await until('b has put it out', async () => !(await alive(b)).includes('e'), 5000);
    });
    t.log(`revoked everywhere after ${Math.round(gone.ms)} ms`);
    await until(
      'it knows why',
      async () => {
        const seen = (await nodes(again)).filter(({state}) => state === 'seen');
        return seen.some(({note = ''}) => note.includes('revoked'));
      },
      meetMsMax,
    );
    t.is(await alive(again), 'e');
    const retry = await again.cli('join', code);
    t.not(retry.code, 0);

    const back = await startDaemon(t, {
      name: 'c',
      mesh: meshOf(a),
      meshPort: 4328,
      within: lan.within(2),
      dataFolder: c.dataFolder,
    });
    await until('the one that was away is back', async () => (await alive(back)) === 'a b c', meetMsMax);
    const hasHeard = async (): Promise<boolean> => /e {4,}\S+ +member +revoked/u.test(await says(back, 'members'));
    await until('it has heard who was put out', hasHeard, meetMsMax);
  },
);

function meshOf(daemon: Daemon): string {
  return /^ {2}mesh +(?<name>[^,]+),/mu.exec(daemon.stdout())?.groups?.['name'] ?? '';
}
