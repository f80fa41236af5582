import test from 'ava';
import {differences, post, startPair} from '../support/llama-parity.ts';
import type {ParityCase} from '../support/llama-parity.ts';
import {picture, recording} from '../support/media.ts';

const image = picture().toString('base64');
const sound = recording(0.3).toString('base64');
const once = {cache_prompt: false, seed: 1, max_tokens: 6};
const marker = '<__media__>';

const shown = (url: string): object => ({
  messages: [
    {
      role: 'user',
      content: [
        {type: 'text', text: 'What is this:'},
        {type: 'image_url', image_url: {url}},
      ],
    },
  ],
});
const played = (data: string): object => ({
  messages: [{role: 'user', content: [{type: 'input_audio', input_audio: {data, format: 'wav'}}]}],
});
const seen = `data:image/png;base64,${image}`;

const seeing: readonly ParityCase[] = [
  {title: 'properties', method: 'GET', path: '/props'},
  post('an image', '/chat/completions', {...once, ...shown(seen)}),
  post('an image, streamed', '/v1/chat/completions', {...once, ...shown(seen), stream: true}),
  post('an image in base64 alone', '/v1/chat/completions', {...once, ...shown(image)}),
  post('the tokens of an image', '/v1/chat/completions/input_tokens', shown(seen)),
  post('no image', '/chat/completions', {...once, ...shown('malformed')}),
  post('no address', '/chat/completions', {...once, ...shown('')}),
  post('something else than an image', '/chat/completions', {...once, ...shown('data:text/html;base64,aGVsbG8=')}),
  post('a file of the server', '/chat/completions', {...once, ...shown('file:///etc/hostname')}),
  post('an image by hand', '/completion', {
    ...once,
    n_predict: 6,
    prompt: {prompt_string: `x ${marker}`, multimodal_data: [image]},
  }),
  post('an image by hand, that is none', '/completion', {
    ...once,
    n_predict: 6,
    prompt: {prompt_string: `x ${marker}`, multimodal_data: ['malformed']},
  }),
];

const hearing: readonly ParityCase[] = [
  post('a recording', '/chat/completions', {...once, ...played(sound)}),
  post('a recording, streamed', '/v1/chat/completions', {...once, ...played(sound), stream: true}),
  post('no recording', '/chat/completions', {...once, ...played('malformed')}),
];

for (const [sense, cases] of [
  ['sight', seeing],
  ['hearing', hearing],
] as const) {
  test.serial(`whatever a plain llama-server with ${sense} answers, the gateway answers too`, async t => {
    const projector = `mmproj-tiny-${sense}-F16.gguf`;
    const variables = {LLAMA_MEDIA_MARKER: marker};
    const {plain, gateway} = await startPair(t, 'tiny-count-F16', {projector, variables});
    t.deepEqual(await differences(cases, plain, gateway), []);
    if (sense === 'hearing') {
      for (const fields of [{}, {max_tokens: '6'}, {stream: 'true'}, {language: 'de'}]) {
        const [theirs, ours] = [await transcribe(plain, fields), await transcribe(gateway, fields)];
        t.deepEqual(ours, theirs, JSON.stringify(fields));
      }
    }
  });
}

/** Without what depends on the prompts before. */
async function transcribe(url: string, fields: Readonly<Record<string, string>>): Promise<readonly unknown[]> {
  const form = new FormData();
  form.set('file', new File([recording(0.3)], 'hum.wav'));
  for (const [name, text] of Object.entries(fields)) form.set(name, text);
  const response = await fetch(`${url}/v1/audio/transcriptions`, {method: 'POST', body: form});
  const text = (await response.text()).replaceAll(/"cached_tokens":\d+/gu, '');
  return [response.status, text];
}
