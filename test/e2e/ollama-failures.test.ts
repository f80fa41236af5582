import test from 'ava';
import {Ollama} from 'ollama';
import {counted} from '../support/chat.ts';
import {modelFolder} from '../support/models.ts';
import {startDaemon} from '../support/daemon.ts';
import {childrenWith} from '../support/processes.ts';
import {engines, models, status} from '../support/reports.ts';
import {startTwoNodes} from '../support/two-nodes.ts';
import {until} from '../support/until.ts';

/** The slow model: 400 numbers, some seconds. */
const model = 'tiny-deep-F16';
const request = {model, messages: [{role: 'user', content: 'count'}]};
const variables = {HEARSAY_THREADS: '1'};

const errorOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

for (const kind of ['a stream', 'a whole answer'] as const) {
  test.serial(`C51, S87: llama-server is killed within ${kind}: an error, no end, the node lives on`, async t => {
    const {holder, entry} = await startTwoNodes(t, ['tiny-deep-F16.gguf'], {variables});
    for (const {url} of [holder, entry]) {
      const client = new Ollama({host: url});
      const kill = () => {
        for (const pid of childrenWith('tiny-deep', [holder.pid])) process.kill(pid, 'SIGKILL');
      };
      await client.generate({model, prompt: ''}); // a request that waits for a cold engine survives its death
      let text = '';
      let isDone = false;
      const error = await t.throwsAsync(async () => {
        if (kind === 'a stream') {
          for await (const part of await client.chat({...request, stream: true})) {
            if (text === '') kill();
            text += part.message.content;
            isDone ||= part.done;
          }
        } else {
          const answer = client.chat(request);
          await until('it runs', async () => (await engines(holder.url)).some(({busy}) => busy === 1));
          kill();
          await answer;
        }
      });
      t.not(errorOf(error), 'Did not receive done or success response in stream.');
      t.true(errorOf(error).length > 10, errorOf(error));
      t.false(isDone);
      t.true(counted(400).startsWith(text));
      await until('nothing is in flight', async () => (await status(url)).inFlight === 0);
      const again = await until('it answers again', async () =>
        client.chat({...request, options: {num_predict: 2}}).catch(() => undefined),
      );
      t.is(again.message.content, counted(2));
    }
  });
}

test.serial('S83: a node that dies before its first piece is replaced, and the client sees nothing of it', async t => {
  const mesh = `test-${crypto.randomUUID().slice(0, 8)}`;
  const folder = await modelFolder(t, 'tiny-deep-F16.gguf');
  const holders = [
    await startDaemon(t, {name: 'one', mesh, models: [folder], variables}),
    await startDaemon(t, {name: 'two', mesh, models: [folder], variables}),
  ];
  const entry = await startDaemon(t, {mesh});
  await until('both holders are known', async () => (await models(entry.url)).some(({nodes}) => nodes.length === 2));
  const long = [{role: 'user', content: 'word '.repeat(150)}];
  const answer = new Ollama({host: entry.url}).chat({model, messages: long, options: {num_predict: 3}});
  const serving = await until('somebody works on it', async () =>
    (await Promise.all(holders.map(async holder => ((await engines(holder.url))[0]?.busy ? holder : undefined)))).find(
      holder => holder !== undefined,
    ),
  );
  serving.kill('SIGKILL');
  t.is((await answer).message.content, counted(3));
});
