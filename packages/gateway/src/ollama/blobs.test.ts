import {createHash} from 'node:crypto';
import {once} from 'node:events';
import {mkdir, mkdtemp, readdir, rm, symlink, writeFile} from 'node:fs/promises';
import {request} from 'node:http';
import type {IncomingMessage} from 'node:http';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {Readable} from 'node:stream';
import {text} from 'node:stream/consumers';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {connectTo, openGateway} from '../../../../test/support/open-gateway.ts';
import {tinyDisk, whyNoTinyDisk} from '../../../../test/support/tiny-disk.ts';
import {chatEvents, scriptedAnswer, scriptedBody, scriptedCluster} from '../../../../test/support/scripted-cluster.ts';
import {createApp} from '../create-app.ts';
import {HeldBodies} from '../held-bodies.ts';
import {openBlobs} from './blobs.ts';

const digest = `sha256:${'ab'.repeat(32)}`;

async function store(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-blobs-'));
  t.teardown(async () => rm(folder, {recursive: true, force: true}));
  return folder;
}

function gatewayOf(blobsFolder: string) {
  const cluster = scriptedCluster(() => scriptedAnswer(scriptedBody(chatEvents(['x']))));
  return openGateway(cluster, {blobsFolder, bodyBytesMax: 1000});
}

for (const [fileName, linkName] of [
  ['My Model.Q8_0.gguf', 'My-Model.Q8_0.gguf'],
  ['../../etc/x.GGUF', 'x.gguf'],
  ['模型.gguf', 'model.gguf'],
  ['.gguf', 'model.gguf'],
  ['..-hidden.gguf', 'hidden.gguf'],
] as const) {
  test(`a blob that is offered as ${fileName} has the name of a model file, below its digest`, async t => {
    const folder = await store(t);
    await openBlobs(folder, {next: () => 0, bytes: length => new Uint8Array(length)}).offer(digest, fileName);
    t.deepEqual(await readdir(folder), ['abababababab']);
    t.deepEqual(await readdir(join(folder, 'abababababab')), [linkName]);
  });
}

test('a blob may have a name of any length', async t => {
  const folder = await store(t);
  const blobs = openBlobs(folder, {next: () => 0, bytes: length => new Uint8Array(length)});
  await t.notThrowsAsync(blobs.offer(digest, `${'x'.repeat(1000)}.gguf`));
});

test('a client that waits to be told to go on is told so, however large the file is', async t => {
  await using gateway = await gatewayOf(await store(t));
  const file = Buffer.alloc(5000, 1);
  const path = `/api/blobs/sha256:${createHash('sha256').update(file).digest('hex')}`;
  using client = await connectTo(gateway.url);
  const head = ['Host: localhost', 'Expect: 100-continue', `Content-Length: ${file.length}`];
  client.socket.write(`POST ${path} HTTP/1.1\r\n${head.join('\r\n')}\r\n\r\n`);
  await client.until(/^HTTP\/1\.1 100 Continue\r\n\r\n/u);
  client.socket.write(file);
  await client.until(/\r\n\r\nHTTP\/1\.1 201 /u);
  t.pass();
});

test('a model of 75 GB may be uploaded over a link with ten megabytes a second', async t => {
  const rules = {corsOrigins: [], hostnames: [], checkHost: true, authorise: () => undefined, tls: undefined};
  const limits = {headMsMax: 60_000, bodyBytesMax: 1000, bodies: new HeldBodies(1000)};
  const app = createApp({...rules, ...limits, random: {next: () => 0, bytes: length => new Uint8Array(length)}});
  t.teardown(() => app.close());
  t.true(app.server.requestTimeout > (1000 * 75e9) / 10e6);
});

/** Of no model of the scripted cluster. */
const unknownDigest = `sha256:${'cd'.repeat(32)}`;

const noDisk = whyNoTinyDisk();
const onFullDisk = noDisk === undefined ? test : test.skip;
if (noDisk !== undefined) console.log(`skipped: uploads onto a full disk; ${noDisk}`);

onFullDisk(
  'onto a disk that is too small nothing is uploaded, and the client is told how much room there is',
  async t => {
    const folder = await tinyDisk(t, 256);
    await using gateway = await gatewayOf(folder);
    const path = `/api/blobs/${unknownDigest}`;
    const response = await fetch(gateway.url + path, {method: 'POST', body: Buffer.alloc(3_000_000)});
    t.is(response.status, 507);
    t.is(response.headers.get('x-should-retry'), 'false');
    t.regex(
      await response.text(),
      /^\{"error":"there is no room .* the file takes .*MB, and .*kB are free; make room/u,
    );
    t.deepEqual(await readdir(join(folder, 'blobs')), []);

    using client = await connectTo(gateway.url);
    const head = ['Host: localhost', 'Expect: 100-continue', 'Content-Length: 3000000'];
    client.socket.write(`POST ${path} HTTP/1.1\r\n${head.join('\r\n')}\r\n\r\n`);
    await client.until(/^HTTP\/1\.1 507 /u);
  },
);

onFullDisk('the room that counts is that of the disk on which the files are', async t => {
  const folder = await store(t);
  await symlink(await tinyDisk(t, 256), join(folder, 'blobs'));
  await using gateway = await gatewayOf(folder);
  using client = await connectTo(gateway.url);
  const head = ['Host: localhost', 'Expect: 100-continue', 'Content-Length: 3000000'];
  client.socket.write(`POST /api/blobs/${unknownDigest} HTTP/1.1\r\n${head.join('\r\n')}\r\n\r\n`);
  t.regex(await client.until(/\r\n\r\n/u), /^HTTP\/1\.1 507 /u);
});

onFullDisk('an upload of unknown size that fills the disk ends with a 507, and leaves its room to others', async t => {
  const folder = await tinyDisk(t, 256);
  await using gateway = await gatewayOf(folder);
  const upload = request(`${gateway.url}/api/blobs/${unknownDigest}`, {method: 'POST'});
  upload.on('error', () => {}); // after the answer: what is still to be sent, nobody takes
  Readable.from(Array.from({length: 300}, () => new Uint8Array(10_000))).pipe(upload);
  const [response]: IncomingMessage[] = await once(upload, 'response');
  t.is(response?.statusCode, 507);
  t.regex(response ? await text(response) : '', /no room on the disk of this node: it is full/u);
  t.deepEqual(await readdir(join(folder, 'blobs')), []);
  const file = Buffer.alloc(200_000, 1);
  const hash = createHash('sha256').update(file).digest('hex');
  t.is((await fetch(`${gateway.url}/api/blobs/sha256:${hash}`, {method: 'POST', body: file})).status, 201);
});

test('what an upload left when the power went is gone with the next one', async t => {
  const folder = await store(t);
  const blobs = join(folder, 'blobs');
  await mkdir(blobs);
  await writeFile(join(blobs, `${digest.replace(':', '-')}.0123456789ab.part`), 'half');
  await using gateway = await gatewayOf(folder);
  const hash = createHash('sha256').update('whole').digest('hex');
  t.is((await fetch(`${gateway.url}/api/blobs/sha256:${hash}`, {method: 'POST', body: 'whole'})).status, 201);
  t.deepEqual(await readdir(blobs), [`sha256-${hash}`]);
});
