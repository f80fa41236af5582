import {createHash, randomBytes} from 'node:crypto';
import {once} from 'node:events';
import {mkdtemp, readdir, readFile, rm, writeFile} from 'node:fs/promises';
import {createServer, type IncomingMessage, type RequestListener} from 'node:http';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {Fault} from '@hearsay/core';
import test, {type ExecutionContext} from 'ava';
import {realEnvironment} from '../../../test/support/environment.ts';
import {downloadFile, type Download} from './download-file.ts';

const deps = realEnvironment();
const content = randomBytes(300_000);
const half = 150_000;

interface Rig {
  readonly folder: string;
  readonly download: Download;
  /** The Range header of every request so far. */
  readonly ranges: (string | undefined)[];
}

async function rig(t: ExecutionContext, answer: RequestListener): Promise<Rig> {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-download-'));
  const ranges: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    ranges.push(request.headers.range);
    answer(request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(async () => {
    server.closeAllConnections();
    server.close();
    await rm(folder, {recursive: true, force: true});
  });
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const sha256 = createHash('sha256').update(content).digest('hex');
  const download = {
    url: `http://127.0.0.1:${port}/file`,
    path: join(folder, 'file'),
    sizeBytes: content.length,
    sha256,
  };
  return {folder, download, ranges};
}

function offsetOf(request: IncomingMessage): number {
  return Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0);
}

/** A server that knows ranges, and cuts the connection after `bytesMax` of each answer. */
function ranged(bytesMax = Infinity, body = content): RequestListener {
  return (request, response) => {
    const from = offsetOf(request);
    const range = {'content-range': `bytes ${from}-${body.length - 1}/${body.length}`};
    response.writeHead(from > 0 ? 206 : 200, {'content-length': body.length - from, ...(from > 0 ? range : {})});
    const part = body.subarray(from, from + bytesMax);
    response.write(part, () => (from + part.length < body.length ? request.socket.end() : response.end()));
  };
}

test('a download whose connection breaks goes on where it stopped', async t => {
  const {download, folder, ranges} = await rig(t, ranged(120_000));
  await downloadFile(download, deps);
  t.deepEqual(await readFile(download.path), content);
  t.deepEqual(await readdir(folder), ['file']);
  t.is(ranges[0], undefined);
  t.true(ranges.length >= 3);
  t.true(ranges.slice(1).every(range => range !== undefined && range !== 'bytes=0-'));
});

test('a piece that arrives together with the end of its connection is kept', async t => {
  const pieceBytes = 10_000;
  const {download, ranges} = await rig(t, (request, response) => {
    const from = offsetOf(request);
    const range = `content-length: ${content.length - from}\r\ncontent-range: bytes ${from}-/*`;
    response.socket?.cork();
    response.socket?.write(`HTTP/1.1 206 Partial Content\r\n${range}\r\n\r\n`);
    response.socket?.end(content.subarray(from, from + pieceBytes));
  });
  await writeFile(`${download.path}.part`, content.subarray(0, -3 * pieceBytes));
  await downloadFile(download, deps);
  t.deepEqual(await readFile(download.path), content);
  t.is(ranges.length, 3);
});

test('what an earlier process left is used, and a whole file is not fetched again', async t => {
  const {download, ranges} = await rig(t, ranged());
  await writeFile(`${download.path}.part`, content.subarray(0, half));
  await downloadFile(download, deps);
  await downloadFile(download, deps);
  t.deepEqual(await readFile(download.path), content);
  t.deepEqual(ranges, [`bytes=${half}-`]);
});

test('wrong bytes left by an earlier process are thrown away and fetched anew', async t => {
  const {download, ranges} = await rig(t, ranged());
  await writeFile(`${download.path}.part`, Buffer.alloc(half));
  await downloadFile(download, deps);
  t.deepEqual(await readFile(download.path), content);
  t.deepEqual(ranges, [`bytes=${half}-`, undefined]);
});

test('a server that knows no ranges sends all of it again', async t => {
  const {download} = await rig(t, (_request, response) => response.end(content));
  await writeFile(`${download.path}.part`, content.subarray(0, half));
  await downloadFile(download, deps);
  t.deepEqual(await readFile(download.path), content);
});

test('a file with another sha256 is a fault and leaves nothing', async t => {
  const {download, folder} = await rig(t, ranged(Infinity, randomBytes(content.length)));
  const fault = await t.throwsAsync(downloadFile(download, deps), {instanceOf: Fault, message: /sha256/});
  t.is(fault?.code, 'INSTALL_FAILED');
  t.deepEqual(await readdir(folder), []);
});

test('a file longer than announced is refused', async t => {
  const {download} = await rig(t, ranged(Infinity, Buffer.concat([content, content])));
  await t.throwsAsync(downloadFile(download, deps), {instanceOf: Fault, message: /longer than announced/});
});

test('a 404 fails at once, a 503 is tried again', async t => {
  const missing = await rig(t, (_request, response) => response.writeHead(404).end());
  await t.throwsAsync(downloadFile(missing.download, deps), {instanceOf: Fault, message: /HTTP 404/});
  t.is(missing.ranges.length, 1);

  let isFirst = true;
  const busy = await rig(t, (request, response) => {
    if (isFirst) response.writeHead(503).end();
    else ranged()(request, response);
    isFirst = false;
  });
  await downloadFile(busy.download, deps);
  t.is(busy.ranges.length, 2);
});

test('an abort ends the download with its own reason and keeps what is there', async t => {
  const {download, folder} = await rig(t, (_request, response) => {
    response.writeHead(200, {'content-length': content.length}).write(content.subarray(0, half));
  });
  const stop = new AbortController();
  const onBytes = (doneBytes: number): void => {
    if (doneBytes === half) stop.abort(new Error('enough'));
  };
  await t.throwsAsync(downloadFile({...download, onBytes}, deps, stop.signal), {message: 'enough'});
  t.deepEqual(await readdir(folder), ['file.part']);
});
