import test from 'ava';
import {chat, chatText, collect} from '../support/chat.ts';
import {startDaemon} from '../support/daemon.ts';
import {modelFolder} from '../support/models.ts';
import {childrenWith} from '../support/processes.ts';
import {aliveNames, engines, models, status} from '../support/reports.ts';
import {until} from '../support/until.ts';

const model = 'tiny-deep-F16';

test.serial(
  'C40: a hung engine costs a request its time but not its answer: before output another node takes it',
  async t => {
    const mesh = `hung-${Math.random().toString(36).slice(2)}`;
    const folder = await modelFolder(t, `${model}.gguf`);
    const one = await startDaemon(t, {name: 'one', mesh, models: [folder]});
    const port = /\/tcp\/(\d+)/u.exec((await status(one.url)).meshAddresses.join())?.[1] ?? '';
    const two = await startDaemon(t, {name: 'two', mesh, peers: [`127.0.0.1:${port}`], models: [folder]});
    await until('both alive', async () => (await aliveNames(one.url)).length === 2, 30_000);
    await until('both hold it', async () => (await models(one.url))[0]?.nodes.length === 2, 30_000);
    t.is((await one.cli('load', model, '--node', 'two')).code, 0);
    await until('one to hear of it', async () => (await engines(one.url)).length === 1);
    const [pid = 0] = childrenWith('llama-server', [two.pid]);

    process.kill(pid, 'SIGSTOP');
    const answer = await chatText(one.url, {model, max_tokens: 3});
    t.like(answer, {text: ' 1 2 3', done: true, status: 200});
    t.is((await engines(one.url)).find(({node}) => node === 'local')?.state, 'ready', 'this node has taken it');
    t.deepEqual(childrenWith(`${pid}`, [pid]), []);
    await until('the hung one to be killed', () => !childrenWith('llama-server', [two.pid]).includes(pid), 60_000);
    t.regex((await two.cli('logs', model, '--node', 'two')).stdout, /it hung: no answer for \d+ s, so it was killed/u);

    const stream = await chat(one.url, {model, max_tokens: 100_000, ignore_eos: true});
    t.is(stream.status, 200);
    const [local = 0] = childrenWith('llama-server', [one.pid]);
    const first = await stream.events.next();
    t.false(first.done);
    process.kill(local, 'SIGSTOP');
    const rest = await collect(stream.events);
    t.false(rest.done, 'after output it is no clean end');
    t.regex(rest.error?.message ?? '', /it hung: no answer/u);
  },
);
