import test from 'ava';
import {formField, withFormField} from './form-field.ts';

async function form(fields: Readonly<Record<string, string | Blob>>): Promise<readonly [Uint8Array, string]> {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) data.append(name, value);
  const request = new Request('http://localhost', {method: 'POST', body: data});
  return [new Uint8Array(await request.arrayBuffer()), request.headers.get('content-type') ?? ''];
}

test('C66: a field is found before and behind a file that looks like a form', async t => {
  const file = new Blob(['--x\r\ncontent-disposition: form-data; name="model"\r\n\r\nwrong\r\n--x--']);
  t.is(formField(...(await form({model: 'whisper', file})), 'model'), 'whisper');
  t.is(formField(...(await form({file, model: 'whisper'})), 'model'), 'whisper');
});

test('a field is set once, and everything else of the form stays as it is', async t => {
  const file = new Blob(['--x\r\ncontent-disposition: form-data; name="stream"\r\n\r\nfalse\r\n--x--']);
  for (const fields of [{file}, {file, stream: 'false'}, {stream: 'false', file}]) {
    const [body, contentType] = await form(fields);
    const changed = withFormField(body, contentType, 'stream', 'true');
    const read = await new Response(Buffer.from(changed), {headers: {'content-type': contentType}}).formData();
    t.deepEqual(read.getAll('stream'), ['true']);
    const kept = read.get('file');
    t.is(typeof kept === 'string' ? kept : await kept?.text(), await file.text());
  }
  const nothing = Buffer.from('anything');
  t.is(withFormField(nothing, 'multipart/form-data; boundary=x', 'stream', 'true'), nothing);
});

test('what is no field, or no form, has no text', async t => {
  t.is(formField(...(await form({prompt: 'model'})), 'model'), undefined);
  t.is(formField(Buffer.from('anything'), 'multipart/form-data', 'model'), undefined);
  t.is(formField(Buffer.from('anything'), 'multipart/form-data; boundary=x', 'model'), undefined);
  t.is(formField(...(await form({model: 'x'.repeat(5000)})), 'model'), undefined);
});

test('boundaries may stand in quotation marks', t => {
  const body = '--a b\r\nContent-Disposition: form-data; name=model\r\n\r\nm\r\n--a b--\r\n';
  t.is(formField(Buffer.from(body), 'multipart/form-data; boundary="a b"', 'model'), 'm');
});
