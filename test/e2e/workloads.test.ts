import {randomUUID} from 'node:crypto';
import {mkdtemp, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import test from 'ava';
import {chatText, counted} from '../support/chat.ts';
import {startDaemon} from '../support/daemon.ts';
import {modelFolder} from '../support/models.ts';
import {models} from '../support/reports.ts';
import {until} from '../support/until.ts';

const variables = {HEARSAY_THREADS: '1'};

test.serial('S62, S64, S66, S96: an application asks for a workload and knows neither model nor machine', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-workloads-'));
  t.teardown(async () => rm(folder, {recursive: true, force: true}));
  const config = join(folder, 'config.toml');
  await writeFile(
    config,
    `
    [workloads.count]
    models = ["nobody-has-this", "tiny-count-*"]
    quants = ["Q8_0"]
    parameters = {max_tokens = 4}
    policy = "exclude=entry"

    [workloads.nothing]
    models = ["nobody-has-this"]
    `,
  );
  const mesh = `test-${randomUUID().slice(0, 8)}`;
  const files = await modelFolder(t, 'tiny-count-F16.gguf', 'tiny-count-Q8_0.gguf');
  const [entry, holder] = await Promise.all([
    startDaemon(t, {name: 'entry', mesh, models: [files], variables, flags: ['--config', config]}),
    startDaemon(t, {name: 'holder', mesh, models: [files], variables}),
  ]);
  await until('both hold both', async () => {
    const held = await models(entry.url);
    return held.length === 2 && held.every(({nodes, hashed}) => nodes.length === 2 && hashed === undefined);
  });
  const digests = new Map((await models(entry.url)).map(({name, digest}) => [name, digest]));

  const {status, text, headers} = await chatText(entry.url, {model: 'Count'});
  t.deepEqual([status, text], [200, counted(4)]);
  t.is(headers.get('x-hearsay-model'), digests.get('tiny-count-Q8_0') ?? '');
  t.is(headers.get('x-hearsay-node'), 'holder');
  t.is((await chatText(entry.url, {model: 'count', max_tokens: 2})).text, counted(2), 'the request has the last word');
  const why = await entry.cli('why', headers.get('x-hearsay-request') ?? '');
  t.regex(why.stdout, /Request \w+ for count: finished on holder[^]*auto;exclude=entry \(from the workload\)/u);

  await until('the node has settled', async () => (await entry.cli('route', 'nothing')).code === 5);
  const none = await fetch(`${entry.url}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({model: 'nothing', messages: []}),
  });
  t.is(none.status, 503);
  t.regex(await none.text(), /no node has a model that the workload nothing accepts \(nobody-has-this\)/u);
  t.is((await chatText(holder.url, {model: 'count'})).status, 404, 'it is known where it is configured');
});
