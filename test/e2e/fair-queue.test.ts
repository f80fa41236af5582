import test from 'ava';
import {startDaemon} from '../support/daemon.ts';
import type {Daemon} from '../support/daemon.ts';
import {modelFolder} from '../support/models.ts';
import {requests} from '../support/reports.ts';
import {scriptedEngine} from '../support/scripted-engine.ts';
import {until} from '../support/until.ts';

/** Keeps its slot for a while before it says anything. */
const slow = JSON.stringify({at: 'never', how: 'waits', ms: 500});

/** One request of a program of that name; its id and the comments that it got while it waited. */
async function ask({url}: Daemon, agent: string): Promise<{readonly id: string; readonly text: string}> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: {'content-type': 'application/json', 'user-agent': agent},
    body: JSON.stringify({model: 'tiny-count-F16', stream: true, messages: [{role: 'user', content: slow}]}),
  });
  return {id: response.headers.get('x-hearsay-request') ?? '', text: await response.text()};
}

test.serial('a program with one request is served in turn with one that has sent twenty before it', async t => {
  const folder = await modelFolder(t, 'tiny-count-F16.gguf');
  const daemon = await startDaemon(t, {
    ...scriptedEngine,
    models: [folder],
    variables: {...scriptedEngine.variables, HEARSAY_SLOTS: '1'},
  });
  await ask(daemon, 'warm-up');
  const order: string[] = [];
  const note = async (agent: string) => {
    const answer = await ask(daemon, agent);
    order.push(agent);
    return answer;
  };
  const greedy = Array.from({length: 20}, async () => note('greedy'));
  const waiting = async () => (await requests(daemon.url)).filter(({position}) => position !== undefined);
  await until('they wait', async () => (await waiting()).length >= 12);
  t.regex((await daemon.cli('requests')).stdout, /waiting, number \d/u);
  const {id} = await note('modest');
  const answers = await Promise.all(greedy);
  t.is(order.at(-1), 'greedy', order.join());
  t.true(answers.every(({text}) => text.includes('[DONE]')));
  const {stdout} = await daemon.cli('why', id);
  t.regex(stdout, /all are busy: it waits as number [12] of this node's clients in turn/u);
  t.regex(stdout, /every decision comes out the same/u);
});
