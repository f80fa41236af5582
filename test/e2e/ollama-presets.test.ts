import {mkdtemp, rm} from 'node:fs/promises';
import {randomUUID} from 'node:crypto';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import test from 'ava';
import {Ollama} from 'ollama';
import {chatText, counted} from '../support/chat.ts';
import {startDaemon} from '../support/daemon.ts';
import {tinyModel} from '../support/models.ts';
import {models} from '../support/reports.ts';
import {putIntoOllama} from '../support/store-trees.ts';
import {until} from '../support/until.ts';

const messages = [{role: 'user', content: 'count'}];

test.serial("what Ollama's own store sets for a model holds for Ollama clients of every node", async t => {
  const store = await mkdtemp(join(tmpdir(), 'hearsay-ollama-'));
  t.teardown(async () => rm(store, {recursive: true, force: true}));
  await putIntoOllama(store, {
    tag: 'registry.ollama.ai/library/tiny/latest',
    layers: {
      model: {file: tinyModel('tiny-count-F16.gguf')},
      system: {text: 'Count.'},
      template: {text: '{{ .System }}{{ .Prompt }}'},
      params: {text: '{"num_predict":3,"top_k":"many"}'},
    },
  });
  const mesh = `test-${randomUUID().slice(0, 8)}`;
  const variables = {HEARSAY_STORES: `ollama=${store}`, HEARSAY_THREADS: '1'};
  const holder = await startDaemon(t, {mesh, variables});
  const entry = await startDaemon(t, {mesh});
  await until('both know it', async () => (await models(entry.url)).some(({names}) => names.includes('tiny:latest')));
  for (const {url} of [holder, entry]) {
    const client = new Ollama({host: url});
    t.is((await client.chat({model: 'tiny', messages})).message.content, counted(3));
    t.is((await client.generate({model: 'tiny:latest', prompt: 'count'})).response, counted(3));
    t.is((await client.chat({model: 'tiny', messages, options: {num_predict: 2}})).message.content, counted(2));
    const shown = await client.show({model: 'tiny'});
    t.is(shown.system, 'Count.');
    t.regex(shown.parameters, /^num_predict +3$/mu);
    t.notRegex(shown.parameters, /top_k/u, 'what means nothing is left out');
    t.is(shown.template === '{{ .System }}{{ .Prompt }}', url === holder.url, 'templates are not gossiped');
    t.is((await chatText(url, {model: 'tiny', max_tokens: 5})).text, counted(5), 'other dialects have their own ways');
    await t.throwsAsync(client.delete({model: 'tiny'}), {message: /does not delete files/u});
    await t.throwsAsync(client.copy({source: 'nope', destination: 'tiny'}), {message: /exists already|not found/u});
  }
});
