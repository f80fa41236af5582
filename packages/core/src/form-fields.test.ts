import test from 'ava';
import {formFields, withFormFields} from './form-fields.ts';

async function form(fields: Readonly<Record<string, string | Blob>>): Promise<readonly [Uint8Array, string]> {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) data.append(name, value);
  const request = new Request('http://localhost', {method: 'POST', body: data});
  return [new Uint8Array(await request.arrayBuffer()), request.headers.get('content-type') ?? ''];
}

const read = (body: Uint8Array | string, contentType: string, ...wanted: readonly string[]): object =>
  Object.fromEntries(formFields(Buffer.from(body), contentType, wanted));

test('C66: a field is found before and behind a file that looks like a form', async t => {
  const file = new Blob(['--x\r\ncontent-disposition: form-data; name="model"\r\n\r\nwrong\r\n--x--']);
  t.deepEqual(read(...(await form({model: 'whisper', file})), 'model'), {model: 'whisper'});
  t.deepEqual(read(...(await form({file, model: 'whisper', language: 'ö'})), 'language', 'model'), {
    model: 'whisper',
    language: 'ö',
  });
});

test('fields are set once, and everything else of the form stays as it is', async t => {
  const bytes = Uint8Array.from({length: 70_000}, (_, index) => (index * 7 + (index >> 8)) % 256);
  const file = new Blob(['--x\r\ncontent-disposition: form-data; name="stream"\r\n\r\nfalse\r\n--x--', bytes]);
  for (const fields of [{file}, {file, stream: 'false'}, {stream: 'false', file}, {model: 'a', file, stream: ''}]) {
    const [body, contentType] = await form(fields);
    const changed = withFormFields(body, contentType, {stream: 'true', model: 'Ö/whisper'});
    const told = await new Response(Buffer.from(changed), {headers: {'content-type': contentType}}).formData();
    t.deepEqual(told.getAll('stream'), ['true']);
    t.deepEqual(told.getAll('model'), ['Ö/whisper']);
    const kept = told.get('file');
    if (!(kept instanceof Blob)) return t.fail('no file');
    t.true(Buffer.from(await file.arrayBuffer()).equals(Buffer.from(await kept.arrayBuffer())));
  }
  const nothing = Buffer.from('anything');
  t.is(withFormFields(nothing, 'multipart/form-data; boundary=x', {stream: 'true'}), nothing);
});

test('a field is found behind files that end like the beginning of a boundary, and they stay as they are', async t => {
  for (const end of ['\r', '\r\r', '\r\n', '\r\r\n', '\r\n\r\n-', '\r\n--', '-', '--', '---']) {
    const [body, contentType] = await form({file: new Blob([`${end}${end}`]), model: 'whisper'});
    t.deepEqual(read(body, contentType, 'model'), {model: 'whisper'});
    const changed = withFormFields(body, contentType, {model: 'other'});
    const told = await new Response(Buffer.from(changed), {headers: {'content-type': contentType}}).formData();
    const file = told.get('file');
    t.deepEqual([file instanceof Blob ? await file.text() : file, told.get('model')], [`${end}${end}`, 'other']);
  }
});

test('what is no field, or no form, has no text', async t => {
  t.deepEqual(read(...(await form({prompt: 'model'})), 'model'), {});
  t.deepEqual(read('anything', 'multipart/form-data', 'model'), {});
  t.deepEqual(read('anything', 'multipart/form-data; boundary=x', 'model'), {});
  t.deepEqual(read(...(await form({model: 'x'.repeat(5000)})), 'model'), {});
  t.deepEqual(read(`--x\r\n${'x'.repeat(10_000)}\r\n\r\nm\r\n--x--`, 'multipart/form-data; boundary=x', 'model'), {});
});

test('boundaries may stand in quotation marks', t => {
  const body = '--a b\r\nContent-Disposition: form-data; name=model\r\n\r\nm\r\n--a b--\r\n';
  t.deepEqual(read(body, 'multipart/form-data; boundary="a b"', 'model'), {model: 'm'});
});

test('a form without its last boundary loses nothing of its last field', t => {
  const body = '--x\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper';
  t.deepEqual(read(body, 'multipart/form-data; boundary=x', 'model'), {model: 'whisper'});
});
