import {createHash} from 'node:crypto';
import {readdir, readFile} from 'node:fs/promises';
import {request} from 'node:http';
import {join} from 'node:path';
import test from 'ava';
import {Ollama} from 'ollama';
import {counted} from '../support/chat.ts';
import {startDaemon} from '../support/daemon.ts';
import {tinyModel} from '../support/models.ts';
import {models} from '../support/reports.ts';
import {startTwoNodes} from '../support/two-nodes.ts';
import {until} from '../support/until.ts';

const digestOf = (bytes: Uint8Array): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

test.serial('a model file that an Ollama client uploads is a model of its node, and of the mesh', async t => {
  const {entry, holder} = await startTwoNodes(t, ['tiny-other-Q4_0.gguf']);
  const client = new Ollama({host: entry.url});
  const file = await readFile(tinyModel('tiny-count-F16.gguf'));
  const blob = `${entry.url}/api/blobs/${digestOf(file)}`;
  t.is((await fetch(blob, {method: 'HEAD'})).status, 404);
  t.is((await fetch(blob, {method: 'POST', body: file})).status, 201);
  t.is((await fetch(blob, {method: 'POST', body: file})).status, 200, 'it is there already');
  t.is((await fetch(blob, {method: 'HEAD'})).status, 200);
  t.false(
    (await models(entry.url)).some(({digest}) => digest === digestOf(file)),
    'nobody has named it yet',
  );

  const post = async (body: object) => {
    const response = await fetch(`${entry.url}/api/create`, {method: 'POST', body: JSON.stringify(body)});
    return {status: response.status, text: await response.text()};
  };
  const files = {'my count.gguf': digestOf(file)};
  for (const odd of [{quantize: 'q4_0'}, {model: 'tiny-other-Q4_0'}]) {
    t.is((await post({model: 'mine', files, ...odd})).status, 400);
    t.is((await models(entry.url)).length, 1, 'what is refused for something else makes no model');
  }
  const made = await post({model: 'mine', files, parameters: {num_predict: 3}});
  t.is(made.status, 200);
  t.regex(made.text, /"status":"success"\}\n$/u);
  t.regex((await post({model: 'mine', files, parameters: {num_predict: 3}})).text, /success/u, 'and again');
  const messages = [{role: 'user', content: 'count'}];
  t.is((await client.chat({model: 'mine', messages})).message.content, counted(3));
  const other = new Ollama({host: holder.url});
  const known = await until('the other node knows it', async () =>
    (await other.list()).models.find(({digest}) => `sha256:${digest}` === digestOf(file)),
  );
  t.is((await other.chat({model: known.name, messages, options: {num_predict: 2}})).message.content, counted(2));
});

test.serial(
  'a file that is no model is refused at once with the reason, again and again, and is in no list',
  async t => {
    const daemon = await startDaemon(t);
    const whole = await readFile(tinyModel('tiny-count-F16.gguf'));
    const bad = [
      ['text.gguf', Buffer.from('this is no model'), /it is not a GGUF file/u],
      ['cut.gguf', whole.subarray(0, 200_000), /it is incomplete/u],
      ['mmproj-x.gguf', await readFile(tinyModel('mmproj-tiny-sight-F16.gguf')), /it is a projector/u],
      [
        'x-00001-of-00002.gguf',
        await readFile(tinyModel('tiny-split-00001-of-00002.gguf')),
        /shard 2 of 2 is missing/u,
      ],
    ] as const;
    const create = async (name: string, file: Uint8Array): Promise<Response> => {
      await fetch(`${daemon.url}/api/blobs/${digestOf(file)}`, {method: 'POST', body: Buffer.from(file)});
      const body = JSON.stringify({model: 'mine', files: {[name]: digestOf(file)}});
      return fetch(`${daemon.url}/api/create`, {method: 'POST', body});
    };
    const startMs = performance.now();
    for (const [name, file, reason] of [...bad, ...bad]) {
      const response = await create(name, file);
      t.is(response.status, 400, name);
      t.regex(await response.text(), reason);
      t.deepEqual(await models(daemon.url), []);
    }
    t.true(performance.now() - startMs < 20_000 * bad.length, 'none is waited for as one that the store has not seen');
    t.is((await create('text.gguf', whole)).status, 200, 'the right file under the same name');
  },
);

test.serial('an upload with other bytes than its digest says, or that breaks off, leaves nothing', async t => {
  const daemon = await startDaemon(t);
  const blob = `${daemon.url}/api/blobs/${digestOf(Buffer.from('right'))}`;
  const wrong = await fetch(blob, {method: 'POST', body: 'wrong'});
  t.is(wrong.status, 400);
  t.regex(await wrong.text(), /^\{"error":"digest mismatch, expected .*, got .*"\}$/u);
  t.is((await fetch(`${daemon.url}/api/blobs/sha256:12`, {method: 'POST', body: 'x'})).status, 400);

  const folder = join(daemon.dataFolder, 'models', 'blobs');
  const upload = request(blob, {method: 'POST'});
  upload.on('error', () => {}); // it is broken off on purpose
  upload.write('a beginning');
  await until('it is being written', async () => (await readdir(folder)).length === 1);
  upload.destroy();
  await until('nothing is left', async () => (await readdir(folder)).length === 0);
  t.is((await fetch(blob, {method: 'HEAD'})).status, 404);
  const created = await fetch(`${daemon.url}/api/create`, {
    method: 'POST',
    body: JSON.stringify({model: 'x', files: {'x.gguf': digestOf(Buffer.from('right'))}}),
  });
  t.is(created.status, 404);
  t.regex(await created.text(), /upload it as a blob/u);
});
