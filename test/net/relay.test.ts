import {randomUUID} from 'node:crypto';
import {mkdtemp, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import type {ExecutionContext} from 'ava';
import {startDaemon} from '../support/daemon.ts';
import type {Daemon} from '../support/daemon.ts';
import {modelFolder} from '../support/models.ts';
import {alive, curl, meetMsMax, netTest, nodes, says} from '../support/net-trial.ts';
import {nattedLans} from '../support/network-namespaces.ts';
import type {NattedLans} from '../support/network-namespaces.ts';
import {timed, until} from '../support/until.ts';

interface Trial {
  readonly nat: NattedLans;
  readonly left: Daemon;
  readonly right: Daemon;
  readonly relay: Daemon;
  readonly startRelay: () => Promise<Daemon>;
}

/** A public member that relays, and one node behind each router; both have joined with a code and nothing else. */
async function twoLans(t: ExecutionContext, announce?: (nat: NattedLans) => readonly string[]): Promise<Trial> {
  t.timeout(400_000);
  const nat = nattedLans(t);
  const mesh = `test-${randomUUID().slice(0, 8)}`;
  const relayData = await folder(t);
  const startRelay = async (): Promise<Daemon> =>
    startDaemon(t, {
      name: 'relay',
      mesh,
      meshPort: 4328,
      within: nat.within('public'),
      dataFolder: relayData,
      flags: ['--relay'],
    });
  const announced = announce?.(nat) ?? [];
  const [relay, left, right] = await Promise.all([
    startRelay(),
    startDaemon(t, {
      name: 'left',
      mesh,
      meshPort: 4328,
      within: nat.within('left'),
      flags: announced.flatMap(address => ['--announce', address]),
    }),
    startDaemon(t, {
      name: 'right',
      mesh: `${mesh}-other`,
      meshPort: 4328,
      models: [await modelFolder(t, 'tiny-count-F16.gguf')],
      within: nat.within('right'),
    }),
  ]);
  await says(relay, 'lock');
  for (const daemon of [left, right]) {
    const code = /hearsay join (\S+)/u.exec(await says(relay, 'invite'))?.[1] ?? '';
    const joined = await timed(async () => says(daemon, 'join', code));
    t.log(`${daemon.name} joined in ${Math.round(joined.ms)} ms`);
  }
  return {nat, left, right, relay, startRelay};
}

async function folder(t: ExecutionContext): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'hearsay-relay-'));
  t.teardown(async () => rm(made, {recursive: true, force: true}));
  return made;
}

function chat(tokens: number, content = 'count', stream = false): readonly string[] {
  const messages = [{role: 'user', content}];
  return ['-d', JSON.stringify({model: 'tiny-count-F16', max_tokens: tokens, stream, messages})];
}

netTest(
  'two LANs behind NAT become one mesh by a code on each side, and requests of every kind cross the relay',
  async t => {
    const {left, right} = await twoLans(t);
    const met = await timed(async () =>
      until('left and right meet', async () => (await alive(left)) === 'left relay right', meetMsMax),
    );
    t.log(`both sides met after ${Math.round(met.ms)} ms`);
    await until('from the other side too', async () => (await alive(right)) === 'left relay right', meetMsMax);
    const seen = (await nodes(left)).find(({name}) => name === 'right');
    t.like(seen, {path: 'relayed', relayedBy: 'relay'});
    await until(
      'the round trip is known',
      async () => /right .* relayed by relay +\d+\.\d ms/u.test(await says(left, 'nodes')),
      meetMsMax,
    );

    const answer = await until(
      'right runs it',
      async () => {
        const text = await curl(left, '/v1/chat/completions', ...chat(3));
        return / 1 2 3"/u.test(text) ? text : undefined;
      },
      meetMsMax,
    );
    t.regex(answer, / 1 2 3"/u);

    const file = join(await folder(t), 'large.json');
    await writeFile(file, JSON.stringify({model: 'tiny-count-F16', prompt: ' 1'.repeat(2_500_000), max_tokens: 1}));
    // Only the other side can count its tokens, so the five megabytes have crossed.
    t.regex(await curl(left, '/v1/completions', '--data-binary', `@${file}`), /\d{6,} tokens.*context/u);

    const all = Array.from({length: 63}, () => `${left.url}/v1/chat/completions`);
    const many = await until(
      '64 requests get through at once',
      async () => {
        const text = await curl(left, '/v1/chat/completions', ...all, ...chat(3), '-Z', '--parallel-immediate');
        return text.split(' 1 2 3"').length - 1 === 64;
      },
      2 * meetMsMax,
    );
    t.true(many);
  },
);

netTest('a relay that restarts under traffic ends streams by name, and the mesh is back soon after', async t => {
  const {left, right, relay, startRelay} = await twoLans(t);
  await until('left and right meet', async () => (await alive(left)) === 'left relay right', meetMsMax);
  await until(
    'right runs it',
    async () => / 1 2 3"/u.test(await curl(left, '/v1/chat/completions', ...chat(3))),
    meetMsMax,
  );
  const stream = curl(left, '/v1/chat/completions', ...chat(100_000, 'count', true), '-N').catch(String);
  await until('it runs', async () => (await curl(left, '/hearsay/v1/status')).includes('"inFlight":1'), meetMsMax);
  relay.kill('SIGKILL');
  await relay.exited;
  const text = await stream;
  t.false(text.includes('[DONE]'));
  t.regex(text, /"error":/u);
  await startRelay();
  const back = await timed(async () =>
    until('left and right meet again', async () => (await alive(left)) === 'left relay right', meetMsMax),
  );
  t.log(`back ${Math.round(back.ms)} ms after the relay was ready`);
  await until(
    'right runs it',
    async () => / 1 2 3"/u.test(await curl(left, '/v1/chat/completions', ...chat(3))),
    meetMsMax,
  );
  t.is(await alive(right), 'left relay right');
});

netTest(
  'when one side can be reached, the path becomes a direct one, and what runs on the relay is not broken',
  async t => {
    const {left, right} = await twoLans(t, nat => [nat.forward('left', 4328)]);
    await until('left and right meet', async () => (await alive(right)) === 'left relay right', meetMsMax);
    await until(
      'directly',
      async () => (await nodes(right)).some(({name, path}) => name === 'left' && path === 'direct'),
      60_000,
    );
    await until(
      'from both sides',
      async () => (await nodes(left)).some(({name, path}) => name === 'right' && path === 'direct'),
      meetMsMax,
    );
    const text = await until(
      'right runs it',
      async () => / 1 2 3"/u.test(await curl(left, '/v1/chat/completions', ...chat(3))),
      meetMsMax,
    );
    t.true(text);
  },
);
