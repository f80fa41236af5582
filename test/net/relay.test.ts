import {writeFile} from 'node:fs/promises';
import {join} from 'node:path';
import {chat, offersPaced, pacedStream, scratchFolder, twoLans} from '../support/nat-trial.ts';
import {alive, curl, meetMsMax, netTest, nodes, says} from '../support/net-trial.ts';
import {timed, until} from '../support/until.ts';

netTest(
  'S100: two LANs behind NAT become one mesh by a code on each side, and requests of every kind cross the relay',
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

    const file = join(await scratchFolder(t), 'large.json');
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
  const {left, right, relay, startRelay} = await twoLans(t, {paced: true});
  await until('left and right meet', async () => (await alive(left)) === 'left relay right', meetMsMax);
  await offersPaced(left);
  await until(
    'right runs it',
    async () => / 1 2 3"/u.test(await curl(left, '/v1/chat/completions', ...chat(3))),
    meetMsMax,
  );
  const stream = pacedStream(left, 120).catch(String);
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
  await until('from the other side too', async () => (await alive(right)) === 'left relay right', meetMsMax);
  t.pass();
});
