import {execFile} from 'node:child_process';
import {randomUUID} from 'node:crypto';
import {setTimeout as sleep} from 'node:timers/promises';
import {promisify} from 'node:util';
import {startDaemon} from '../support/daemon.ts';
import type {Daemon} from '../support/daemon.ts';
import {modelFolder} from '../support/models.ts';
import {meetMsMax, netTest} from '../support/net-trial.ts';
import {switchedLan} from '../support/network-namespaces.ts';
import {until} from '../support/until.ts';

/** A client on the same host as the daemon: its gateway is on loopback there. */
async function curl(within: readonly string[], url: string, body?: object): Promise<string> {
  const [program, ...args] = [...within, 'curl', '-sS', '-m', '60', '-D', '-', url];
  const {stdout} = await promisify(execFile)(program, [...args, ...(body ? ['-d', JSON.stringify(body)] : [])]);
  return stdout;
}

async function alive(within: readonly string[], daemon: Daemon): Promise<number> {
  const answer = await curl(within, `${daemon.url}/hearsay/v1/nodes`);
  return answer.split('"state":"alive"').length - 1;
}

netTest(
  'S100, R61: two hosts on a switch without a router find each other, and again after the cable was out',
  async t => {
    t.timeout(400_000);
    const lan = switchedLan(t, 2);
    const mesh = `test-${randomUUID().slice(0, 8)}`;
    const files = ['tiny-count-F16', 'tiny-other-Q4_0'];
    const daemons = await Promise.all(
      files.map(async (file, index) =>
        startDaemon(t, {
          name: `h${index}`,
          mesh,
          meshPort: 4328,
          models: [await modelFolder(t, `${file}.gguf`)],
          within: lan.within(index),
        }),
      ),
    );
    const [first, second] = daemons;
    if (!first || !second) return t.fail();
    const here = lan.within(0);
    const askOther = async (): Promise<string> =>
      curl(here, `${first.url}/v1/chat/completions`, {
        model: 'tiny-other-Q4_0',
        max_tokens: 3,
        messages: [{role: 'user', content: 'count'}],
      });

    await until('they know each other', async () => (await alive(here, first)) === 2, meetMsMax);
    await until('the other runs it', async () => / 1 2 3"/u.test(await askOther()), meetMsMax);
    t.regex(await askOther(), /x-hearsay-node: h1/iu);

    lan.cable(1, 'down');
    await until('the loss is noticed', async () => (await alive(here, first)) === 1, 9000);
    await sleep(12_000);
    t.regex(await askOther(), /HTTP\/1\.1 (?:404|503)/u);
    lan.cable(1, 'up');
    await until('they route to each other again', async () => / 1 2 3"/u.test(await askOther()), meetMsMax);
    await until('it is alive', async () => (await alive(here, first)) === 2, meetMsMax);
  },
);

netTest('S3, S4: naming a peer on one side is enough, and both may use it', async t => {
  t.timeout(400_000);
  const lan = switchedLan(t, 2);
  const mesh = `test-${randomUUID().slice(0, 8)}`;
  const folder = await modelFolder(t, 'tiny-count-F16.gguf');
  const second = await startDaemon(t, {name: 'h1', mesh, meshPort: 4328, models: [folder], within: lan.within(1)});
  const first = await startDaemon(t, {name: 'h0', mesh, peers: [` ${lan.address(1)} `], within: lan.within(0)});
  await until('they know each other', async () => (await alive(lan.within(0), first)) === 2, meetMsMax);
  await until('from the other side too', async () => (await alive(lan.within(1), second)) === 2, meetMsMax);
  t.pass();
});

netTest('S60: a host of another mesh name is told nothing', async t => {
  const lan = switchedLan(t, 2);
  const folder = await modelFolder(t, 'tiny-count-F16.gguf');
  const holder = await startDaemon(t, {
    mesh: `test-${randomUUID()}`,
    meshPort: 4328,
    models: [folder],
    within: lan.within(1),
  });
  const stranger = await startDaemon(t, {mesh: `test-${randomUUID()}`, peers: [lan.address(1)], within: lan.within(0)});
  await sleep(3000);
  t.is(await alive(lan.within(0), stranger), 1);
  t.is(await alive(lan.within(1), holder), 1);
  t.false((await curl(lan.within(0), `${stranger.url}/hearsay/v1/models`)).includes('tiny-count'));
});
