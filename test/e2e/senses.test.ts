import {randomUUID} from 'node:crypto';
import {writeFile} from 'node:fs/promises';
import {join} from 'node:path';
import Anthropic from '@anthropic-ai/sdk';
import type {EngineReport} from '@hearsay/core';
import test from 'ava';
import {Ollama} from 'ollama';
import OpenAI from 'openai';
import {counterModel} from '../../scripts/tiny-models/counter-model.ts';
import {chat, chatText, counted} from '../support/chat.ts';
import {startDaemon} from '../support/daemon.ts';
import type {Daemon} from '../support/daemon.ts';
import {picture, recording} from '../support/media.ts';
import {modelFolder} from '../support/models.ts';
import {engines, models, requests, why} from '../support/reports.ts';
import {shared} from '../support/shared.ts';
import {until} from '../support/until.ts';

/** Real models that hear and see, in real llama-servers: what they say is the same whatever they are shown. */

const model = 'tiny-count-F16';
const max = 8;
const sound = recording();
const image = picture().toString('base64');

interface Senses {
  readonly ears: Daemon;
  readonly eyes: Daemon;
  /** Has no model at all. */
  readonly entry: Daemon;
}

/** Three nodes: one model that hears, the same one but that it sees, and none. */
const senses = shared('nodes that hear and see', async (t): Promise<Senses> => {
  const mesh = `test-${randomUUID().slice(0, 8)}`;
  const start = async (name: string, ...files: readonly string[]): Promise<Daemon> =>
    startDaemon(t, {
      name,
      mesh,
      models: files.length === 0 ? [] : [await modelFolder(t, ...files)],
      variables: {HEARSAY_THREADS: '1'},
    });
  const ears = await start('ears', 'tiny-count-F16.gguf', 'mmproj-tiny-hearing-F16.gguf');
  const eyes = await start('eyes', 'tiny-count-F16.gguf', 'mmproj-tiny-sight-F16.gguf');
  const entry = await start('entry');
  for (const {url} of [ears, eyes, entry]) {
    await until('both models are known', async () => (await models(url)).length === 2);
  }
  return {ears, eyes, entry};
});

async function loadedAt({url}: Daemon): Promise<readonly EngineReport[]> {
  return (await engines(url)).filter(({node}) => node === 'local');
}

const clientOf = ({url}: Daemon): OpenAI => new OpenAI({baseURL: `${url}/v1`, apiKey: 'any', maxRetries: 0});

// The first one, because later ones load the model of the node that only sees.
test.serial('C66: a recording is written down by the node that can hear, whichever is asked', async t => {
  const {ears, eyes, entry} = senses();
  const file = new File([sound], 'hum.wav', {type: 'audio/wav'});
  for (const daemon of [entry, eyes, ears]) {
    const client = clientOf(daemon);
    const {data, response} = await client.audio.transcriptions.create({model, file}).withResponse();
    t.is(data.text, counted(400));
    t.is(response.headers.get('x-hearsay-node'), 'ears');

    const form = new FormData();
    form.set('max_tokens', String(max));
    form.set('file', file);
    form.set('model', model);
    const plain = await fetch(`${daemon.url}/v1/audio/transcriptions`, {method: 'POST', body: form});
    t.like(await plain.json(), {text: counted(max), usage: {output_tokens: max}});

    let streamed = '';
    for await (const event of await client.audio.transcriptions.create({model, file, stream: true})) {
      if (event.type === 'transcript.text.delta') streamed += event.delta;
    }
    t.is(streamed, counted(400));
  }
  t.deepEqual(await loadedAt(eyes), [], 'the node that only sees loaded nothing');

  t.is(await clientOf(entry).audio.transcriptions.create({model, file, response_format: 'text'}), counted(400));
  const subtitles = clientOf(entry).audio.transcriptions.create({model, file, response_format: 'srt'});
  const refused = await t.throwsAsync(subtitles, {instanceOf: OpenAI.BadRequestError});
  t.regex(refused?.message ?? '', /Only 'json' response_format is supported/u);
  const silence = clientOf(entry).audio.transcriptions.create({model, file: new File(['RIFF'], 'a.wav')});
  await t.throwsAsync(silence, {instanceOf: OpenAI.APIError}, 'what is no recording is an error, not a transcript');
});

test.serial('C6: a client that leaves a transcript frees the slot while others go on, local and remote', async t => {
  const folder = await modelFolder(t, 'mmproj-tiny-hearing-F16.gguf');
  const size = {width: 128, layers: 256, heads: 2, headsKv: 1, feedForward: 128};
  await writeFile(join(folder, 'tiny-slow.gguf'), counterModel({name: 'Tiny Slow', size}));
  const mesh = `test-${randomUUID().slice(0, 8)}`;
  const holder = await startDaemon(t, {mesh, models: [folder], variables: {HEARSAY_THREADS: '1', HEARSAY_SLOTS: '2'}});
  const entry = await startDaemon(t, {mesh});
  await until('the model is known', async () => (await models(entry.url)).length === 1);
  const slow = 'tiny-slow';
  const busy = async (): Promise<number | undefined> => (await loadedAt(holder))[0]?.busy;

  // llama-server notices that nobody waits for a whole answer only while it has nothing else to do.
  const stop = new AbortController();
  const other = await chat(holder.url, {model: slow, ignore_eos: true, max_tokens: 1900}, stop.signal);
  let said = 0;
  const reading = (async () => {
    for await (const event of other.events) said += event.length > 0 ? 1 : 0;
  })();
  await until('the other one speaks', () => said > 0);
  for (const daemon of [holder, entry]) {
    for (const stream of [false, true]) {
      const leave = new AbortController();
      const form = {model: slow, file: new File([sound], 'hum.wav'), stream};
      const asked = clientOf(daemon).audio.transcriptions.create(form, {signal: leave.signal});
      const answer = asked.asResponse().then(async response => response.text());
      await until('both run', async () => (await busy()) === 2);
      leave.abort();
      await answer.catch(() => undefined);
      const saidBefore = said;
      await until('the slot is free', async () => (await busy()) === 1);
      t.true(said - saidBefore < 200, `it was not waited for: a transcript has 400 tokens, ${said - saidBefore} came`);
    }
  }
  const transcripts = async () =>
    (await requests(holder.url)).filter(({endpoint}) => endpoint === '/v1/audio/transcriptions');
  await until('all have ended', async () => (await transcripts()).every(({outcome}) => outcome !== undefined));
  t.deepEqual(
    (await transcripts()).map(({outcome}) => outcome),
    ['cancelled', 'cancelled', 'cancelled', 'cancelled'],
  );
  stop.abort();
  await t.throwsAsync(reading);
});

test.serial('sound and images in a chat of each dialect go to the node that has the sense for them', async t => {
  const {ears, eyes, entry} = senses();
  for (const daemon of [entry, ears, eyes]) {
    const openai = clientOf(daemon);
    const seen = openai.chat.completions.create({
      model,
      max_tokens: max,
      messages: [
        {
          role: 'user',
          content: [
            {type: 'text', text: 'what is this?'},
            {type: 'image_url', image_url: {url: `data:image/png;base64,${image}`}},
          ],
        },
      ],
    });
    const heard = openai.chat.completions.create({
      model,
      max_tokens: max,
      messages: [
        {
          role: 'user',
          content: [{type: 'input_audio', input_audio: {data: sound.toString('base64'), format: 'wav'}}],
        },
      ],
    });
    const answered = openai.responses.create({
      model,
      max_output_tokens: max,
      input: [
        {
          role: 'user',
          content: [{type: 'input_image', detail: 'auto', image_url: `data:image/png;base64,${image}`}],
        },
      ],
    });
    t.is((await seen).choices[0]?.message.content, counted(max));
    t.is((await heard).choices[0]?.message.content, counted(max));
    t.is((await answered).output_text, counted(max));

    const anthropic = new Anthropic({baseURL: daemon.url, apiKey: 'any', maxRetries: 0});
    const said = await anthropic.messages.create({
      model,
      max_tokens: max,
      messages: [
        {
          role: 'user',
          content: [{type: 'image', source: {type: 'base64', media_type: 'image/png', data: image}}],
        },
      ],
    });
    t.deepEqual(said.content, [{type: 'text', text: counted(max)}]);

    const ollama = new Ollama({host: daemon.url});
    for (const medium of [image, sound.toString('base64')]) {
      const {message} = await ollama.chat({
        model,
        options: {num_predict: max},
        messages: [{role: 'user', content: 'what is this?', images: [medium]}],
      });
      t.is(message.content, counted(max));
      const {response} = await ollama.generate({model, prompt: 'x', images: [medium], options: {num_predict: max}});
      t.is(response, counted(max));
    }
  }
  for (const daemon of [ears, eyes]) t.is((await loadedAt(daemon)).length, 1, daemon.name);
});

test.serial('a large picture or recording is not taken for a long text: it goes where the model is loaded', async t => {
  const mesh = `test-${randomUUID().slice(0, 8)}`;
  const chatAbout = (type: 'image_url' | 'input_audio') => async (url: string) =>
    chatText(url, {model, max_tokens: 2, messages: [large(type)]});
  for (const [sense, asks] of [
    ['sight', [chatAbout('image_url')]],
    ['hearing', [chatAbout('input_audio'), transcribeLong]],
  ] as const) {
    const start = async (name: string): Promise<Daemon> => {
      const files = ['tiny-count-F16.gguf', `mmproj-tiny-${sense}-F16.gguf`];
      return startDaemon(t, {name, mesh, models: [await modelFolder(t, ...files)], variables: {HEARSAY_THREADS: '1'}});
    };
    const [warm, cold] = [await start('warm'), await start('cold')];
    await until('both have it', async () => (await models(cold.url))[0]?.nodes.length === 2);
    await chatText(warm.url, {model, max_tokens: 1});
    await until('it is known to be loaded', async () => (await engines(cold.url)).some(({state}) => state === 'ready'));
    for (const ask of asks) {
      const {status, headers} = await ask(cold.url);
      t.is(status, 200);
      t.is(headers.get('x-hearsay-node'), 'warm', sense);
    }
    if (sense === 'hearing') {
      const {headers} = await transcribeLong(cold.url, new Blob([new Uint8Array(20_000_000)]));
      const id = headers.get('x-hearsay-request') ?? '';
      t.true((await pathSeconds(cold.url, id, 'warm')) > 0.2, 'its bytes count for the way, of 100 MB a second');
    }
    await Promise.all([warm.stop(), cold.stop()]);
  }
});

/** What the way to a node was expected to take. */
async function pathSeconds(url: string, id: string, name: string): Promise<number> {
  const decided = (await why(url, id)).steps.flatMap(({event}) => (event.kind === 'decided' ? event.ranked : []));
  return decided.find(ranked => ranked.name === name)?.cost?.terms.path ?? 0;
}

/** A megabyte of pixels is a thousand tokens, and half a minute of sound 750. */
function large(type: 'image_url' | 'input_audio'): object {
  const url = `data:image/png;base64,${picture(600).toString('base64')}`;
  const data = recording(30).toString('base64');
  const part = type === 'image_url' ? {image_url: {url}} : {input_audio: {data, format: 'wav'}};
  return {role: 'user', content: [{type, ...part}]};
}

async function transcribeLong(url: string, more?: Blob): Promise<Response> {
  const form = new FormData();
  form.set('model', model);
  form.set('file', new File([recording(30)], 'hum.wav'));
  if (more) form.set('more', more);
  return fetch(`${url}/v1/audio/transcriptions`, {method: 'POST', body: form});
}

test.serial('what a model can hear and see is told to every client, and its tokens are in the journal', async t => {
  const {entry} = senses();
  const told = (await models(entry.url)).map(({capabilities}) => capabilities);
  t.true(told.some(each => each.includes('audio') && !each.includes('vision')));
  t.true(told.some(each => each.includes('vision') && !each.includes('audio')));
  for (const words of [['models'], ['route', model, '--needs', 'audio']]) {
    const {code, stdout, stderr} = await entry.cli(...words);
    t.is(code, 0, stderr);
    t.regex(stdout, /ears/u);
  }

  const file = new File([sound], 'hum.wav');
  await clientOf(entry).audio.transcriptions.create({model, file});
  const [request] = await requests(entry.url);
  t.like(request, {outcome: 'finished', nodeName: 'ears', usage: {outputTokens: 401}}, 'with the end of the turn');
  t.true((request?.usage?.promptTokens ?? 0) > 25, 'a second of sound is 25 tokens');
});
