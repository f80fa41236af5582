import test from 'ava';
import {Ollama} from 'ollama';
import {counted} from '../support/chat.ts';
import {freezeEngines, loadOnly, sharedHolders} from '../support/holders.ts';
import {childrenWith} from '../support/processes.ts';
import {busyAt, requests, status} from '../support/reports.ts';
import {until} from '../support/until.ts';

/** The slow model: 400 numbers, some seconds. */
const model = 'tiny-deep-F16';
const request = {model, messages: [{role: 'user', content: 'count'}]};
const {take, end} = sharedHolders(model);

const errorOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

test.serial('S83: a node that dies before its first piece is replaced, and the client sees nothing of it', async t => {
  const [entry, serving, other] = await take(2);
  if (!serving || !other) return t.fail();
  await loadOnly(entry, model, serving);
  const wake = freezeEngines(t, serving);
  const answer = new Ollama({host: entry.url}).chat({...request, options: {num_predict: 3}});
  await until('it works', async () => (await busyAt(serving.url)) === 1);
  end(serving, 'SIGKILL');
  wake();
  t.is((await answer).message.content, counted(3));
  t.like((await requests(entry.url))[0], {nodeName: other.name, attempts: 2, outcome: 'finished'});
});

for (const kind of ['a stream', 'a whole answer'] as const) {
  test.serial(`C51, S87: llama-server is killed within ${kind}: an error, no end, the node lives on`, async t => {
    const [entry, holder] = await take(1);
    if (!holder) return t.fail();
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
          await until('it runs', async () => (await busyAt(holder.url)) === 1);
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
    end(holder, 'SIGTERM'); // after so many deaths it would wait long before it starts the model again
  });
}
