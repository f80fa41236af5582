import {randomUUID} from 'node:crypto';
import test from 'ava';
import {chatText, counted} from '../support/chat.ts';
import {startDaemon} from '../support/daemon.ts';
import {childrenWith} from '../support/processes.ts';
import {aliveNames, models, requests} from '../support/reports.ts';
import {roomyModels, roomyVariables} from '../support/roomy-models.ts';
import {until} from '../support/until.ts';

/**
 * Where slots are fewer than requests, a machine that is slow enough makes a second copy worth its load afterwards:
 * then only `off` is a promise.
 */
const cases = [
  {slots: '20', spread: 'auto'},
  {slots: '4', spread: 'off'},
] as const;

for (const {slots, spread} of cases) {
  test.serial(
    `R91: twenty first requests through three nodes load the model once: ${slots} slots, spread ${spread}`,
    async t => {
      const mesh = `test-${randomUUID().slice(0, 8)}`;
      const names = ['a', 'b', 'c'];
      const folder = await roomyModels(t, ...names);
      const variables = {...roomyVariables, HEARSAY_SLOTS: slots, HEARSAY_SPREAD: spread, HEARSAY_CONTEXT: '256'};
      const daemons = await Promise.all(
        [0, 1, 2].map(async index => startDaemon(t, {name: `n${index}`, mesh, models: [folder], variables})),
      );
      for (const {url} of daemons) {
        await until('everybody knows everybody', async () => (await aliveNames(url)).length === 3);
        await until('all models are proven, and everybody knows who has them', async () => {
          const found = await models(url);
          return (
            found.length === names.length &&
            found.every(({nodes, hashed}) => nodes.length === 3 && hashed === undefined)
          );
        });
      }
      const pids = daemons.map(({pid}) => pid);
      const loads = (model: string): number =>
        daemons
          .flatMap(daemon => daemon.stderr().split('\n'))
          .filter(line => line.includes('an engine is ready') && line.includes(`"model":"${model}"`)).length;

      for (const model of names) {
        const asked = Array.from({length: 20}, async (_, index) =>
          chatText(daemons[index % 3]?.url ?? '', {model, max_tokens: 5}),
        );
        const answers = await Promise.all(asked);
        t.deepEqual(
          answers.map(({status, text}) => `${status}${text}`),
          answers.map(() => `200${counted(5)}`),
          model,
        );
        t.is(childrenWith(`--alias ${model} `, pids).length, 1, model);
        t.is(loads(model), 1, model);
        // Not by the headers: one that waited long has none.
        const ran = (await Promise.all(daemons.map(async ({url}) => requests(url)))).flat();
        const nodes = ran.filter(({role, asked: name}) => role === 'entry' && name === model);
        t.deepEqual([nodes.length, new Set(nodes.map(({nodeName}) => nodeName)).size], [20, 1], model);
      }
    },
  );
}

test.serial('R91: a pinned request loads where it is pinned to, also when another node has the model', async t => {
  const mesh = `test-${randomUUID().slice(0, 8)}`;
  const folder = await roomyModels(t, 'a');
  const daemons = await Promise.all(
    ['n0', 'n1'].map(async name => startDaemon(t, {name, mesh, models: [folder], variables: roomyVariables})),
  );
  const [entry] = daemons;
  if (!entry) return t.fail();
  await until('both hold it', async () => (await models(entry.url)).some(({nodes}) => nodes.length === 2));
  for (const name of ['n0', 'n1', 'n0']) {
    const response = await fetch(`${entry.url}/v1/chat/completions`, {
      method: 'POST',
      headers: {'content-type': 'application/json', 'x-hearsay-policy': `pin=${name}`},
      body: JSON.stringify({model: 'a', max_tokens: 3, messages: [{role: 'user', content: 'x'}]}),
    });
    t.is(response.status, 200);
    t.is(response.headers.get('x-hearsay-node'), name);
  }
});
