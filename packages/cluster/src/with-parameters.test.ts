import test from 'ava';
import {withParameters} from './with-parameters.ts';

const parameters = {language: 'de', max_tokens: 4, temperature: 0, stop: ['x']};

test('S64: the parameters of a workload stand where the body, JSON or a form, says nothing itself', async t => {
  const body = Buffer.from('{"max_tokens":2,"n":1}');
  t.deepEqual(JSON.parse(Buffer.from(withParameters({body}, parameters)).toString()), {
    language: 'de',
    max_tokens: 2,
    temperature: 0,
    stop: ['x'],
    n: 1,
  });

  const form = new FormData();
  form.set('max_tokens', '2');
  form.set('file', new Blob(['--x']));
  const sent = new Request('http://localhost', {method: 'POST', body: form});
  const contentType = sent.headers.get('content-type') ?? '';
  const changed = withParameters({body: await sent.bytes(), contentType}, parameters);
  const told = await new Response(Buffer.from(changed), {headers: {'content-type': contentType}}).formData();
  const texts = [...told].filter(([name]) => name !== 'file').toSorted(([a], [b]) => a.localeCompare(b));
  t.deepEqual(texts, [
    ['language', 'de'],
    ['max_tokens', '2'],
    ['stop', '["x"]'],
    ['temperature', '0'],
  ]);
  t.true(told.get('file') instanceof Blob);
});

test('a body that says all itself, and one that is none, stay as they are', t => {
  const none = new Uint8Array();
  t.is(withParameters({body: none}, parameters), none);
  const body = Buffer.from('--x\r\ncontent-disposition: form-data; name="n"\r\n\r\n1\r\n--x--\r\n');
  t.is(withParameters({body, contentType: 'multipart/form-data; boundary=x'}, {n: 2}), body);
});
