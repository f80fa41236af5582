import {randomUUID} from 'node:crypto';
import {writeFile} from 'node:fs/promises';
import {join} from 'node:path';
import test from 'ava';
import {Ollama} from 'ollama';
import {counterModel} from '../../scripts/tiny-models/counter-model.ts';
import {counted} from '../support/chat.ts';
import {startDaemon} from '../support/daemon.ts';
import {modelFolder} from '../support/models.ts';
import {engines, models} from '../support/reports.ts';
import {until} from '../support/until.ts';

const size = {width: 64, layers: 2, heads: 2, headsKv: 1, feedForward: 64};
const old = Array.from({length: 12}, (_, index) => ({role: 'user', content: `old ${index} ${'x '.repeat(200)}`}));
const messages = [...old, {role: 'user', content: 'count'}];

test.serial(
  'R106: num_ctx loads more context on whichever node, and where that may not be nothing is left out',
  async t => {
    const mesh = `test-${randomUUID().slice(0, 8)}`;
    const folder = await modelFolder(t);
    await writeFile(join(folder, 'long.gguf'), counterModel({name: 'long', seed: 1, contextTokens: 32_768, size}));
    await writeFile(join(folder, 'short.gguf'), counterModel({name: 'short', seed: 2, contextTokens: 32_768, size}));
    const config = join(folder, 'config.toml');
    await writeFile(config, '[models."short"]\ncontext = 2048\n');
    const [entry] = await Promise.all([
      startDaemon(t, {mesh}),
      startDaemon(t, {mesh, models: [folder], flags: ['--config', config], variables: {HEARSAY_THREADS: '1'}}),
    ]);
    await until('the entry node knows them', async () => (await models(entry.url)).length === 2);
    const client = new Ollama({host: entry.url});
    const sizes = async (): Promise<readonly string[]> =>
      (await engines(entry.url)).map(({slots, context}) => `${slots} × ${context}`);
    const chat = async (model: string, num_ctx: number): Promise<string> =>
      (await client.chat({model, messages, options: {num_ctx, num_predict: 3}})).message.content;

    t.is(await chat('long', 16_384), counted(3));
    await until('it is told', async () => (await sizes()).join() === '2 × 16384');

    t.is(await chat('short', 2048), counted(3), 'without a wish for more, the oldest messages go');
    t.like(await t.throwsAsync(chat('short', 16_384), {message: /exceeds the available context size \(2048/u}), {
      status_code: 400,
    });
  },
);
