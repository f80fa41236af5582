import {randomUUID} from 'node:crypto';
import {writeFile} from 'node:fs/promises';
import {join} from 'node:path';
import test from 'ava';
import {chatText} from '../support/chat.ts';
import {startDaemon} from '../support/daemon.ts';
import {modelFolder} from '../support/models.ts';
import {engines, models} from '../support/reports.ts';
import {until} from '../support/until.ts';

test.serial(
  'what a model can do and how much context it has is corrected by the engine that loads it, on every node',
  async t => {
    const mesh = `test-${randomUUID().slice(0, 8)}`;
    const folder = await modelFolder(t, 'tiny-count-F16.gguf');
    const template = join(folder, 'tools.jinja');
    const config = join(folder, 'config.toml');
    const tools = '{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}';
    await writeFile(template, tools);
    await writeFile(
      config,
      `[engine]\ncontext = 300\n[models."tiny-count-F16"]\nextra_arguments = ["--chat-template-file", "${template}"]\n`,
    );
    const [entry] = await Promise.all([
      startDaemon(t, {mesh}),
      startDaemon(t, {mesh, models: [folder], flags: ['--config', config], variables: {HEARSAY_THREADS: '1'}}),
    ]);
    const capabilities = async (): Promise<readonly string[] | undefined> =>
      (await models(entry.url)).find(({hashed}) => hashed === undefined)?.capabilities;
    await until('the entry node knows it', async () => (await capabilities()) !== undefined);
    t.false((await capabilities())?.includes('tools'), 'its header tells of none');

    t.is((await chatText(entry.url, {model: 'tiny-count-F16', max_tokens: 3})).status, 200);
    await until('the entry node hears of it', async () => (await capabilities())?.includes('tools') === true);
    t.regex((await entry.cli('show', 'tiny-count-F16')).stdout, /can do: +chat, completion, tools, insert$/mu);
    t.is((await engines(entry.url))[0]?.context, 512, 'llama-server rounds it up');
  },
);
