import {createHash} from 'node:crypto';
import {createReadStream} from 'node:fs';
import {open, rename, rm, stat, type FileHandle} from 'node:fs/promises';
import {pipeline} from 'node:stream/promises';
import {describeError, Fault, type Clock} from '@hearsay/core';

export interface Download {
  readonly url: string;
  /** Where the whole, verified file appears; the bytes so far are beside it, in `PATH.part`. */
  readonly path: string;
  readonly sizeBytes: number;
  /** In hex. */
  readonly sha256: string;
  readonly onBytes?: (doneBytes: number) => void;
}

/** Tries without a single new byte; a connection that breaks but goes on each time may break as often as it likes. */
const fruitlessTriesMax = 4;

/** A connection silent for this long is given up and taken up again where it stopped. */
const silenceMsMax = 30_000;

const retryMs = 500;

/**
 * Downloads a file whose size and hash are known, and resumes what an earlier try or an earlier process left. `path`
 * exists only with the right content.
 */
export async function downloadFile(
  download: Download,
  deps: {readonly clock: Clock},
  signal?: AbortSignal,
): Promise<void> {
  const partial = `${download.path}.part`;
  if ((await sizeOf(download.path)) === download.sizeBytes && (await sha256Of(download.path)) === download.sha256)
    return;
  const leftOverBytes = await sizeOf(partial);
  await fetchAll(download, partial, deps, signal);
  if ((await sha256Of(partial)) !== download.sha256) {
    await rm(partial, {force: true});
    if (leftOverBytes === 0)
      throw new Fault('INSTALL_FAILED', `${download.url} does not have the announced sha256; it was thrown away`, {
        details: {url: download.url, sha256: download.sha256},
      });
    await downloadFile(download, deps, signal); // the bytes of the earlier process were bad: once more without them
    return;
  }
  await rename(partial, download.path);
}

async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return hash.digest('hex');
}

async function fetchAll(
  download: Download,
  partial: string,
  deps: {readonly clock: Clock},
  signal: AbortSignal | undefined,
): Promise<void> {
  let fruitless = 0;
  for (;;) {
    const before = await sizeOf(partial);
    if (before === download.sizeBytes) return;
    let problem = 'the connection ended early';
    try {
      await fetchRest(download, partial, before, deps, signal);
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof Fault) throw error;
      problem = describeError(error);
    }
    fruitless = (await sizeOf(partial)) > before ? 0 : fruitless + 1;
    if ((await sizeOf(partial)) === download.sizeBytes) return;
    if (fruitless === fruitlessTriesMax)
      throw new Fault(
        'INSTALL_FAILED',
        `cannot download ${download.url}: ${problem}; try again later, what is here is kept`,
        {
          details: {url: download.url, problem},
        },
      );
    await deps.clock.sleep(retryMs * (fruitless + 1), signal);
  }
}

/** One connection's worth. Returning or throwing anything but a fault means: look at what is there, and go on. */
async function fetchRest(
  download: Download,
  partial: string,
  from: number,
  deps: {readonly clock: Clock},
  signal: AbortSignal | undefined,
): Promise<void> {
  const silence = new AbortController();
  const watch = (): Disposable =>
    deps.clock.after(silenceMsMax, () => silence.abort(new Error(`silent for ${silenceMsMax / 1000} s`)));
  let timer = watch();
  let file: FileHandle | undefined;
  try {
    const response = await fetch(download.url, {
      headers: {'accept-encoding': 'identity', ...(from > 0 ? {range: `bytes=${from}-`} : {})},
      signal: signal === undefined ? silence.signal : AbortSignal.any([signal, silence.signal]),
    });
    const {status, body} = response;
    const resumes = status === 206 && response.headers.get('content-range')?.startsWith(`bytes ${from}-`) === true;
    if (body === null || (status !== 200 && !resumes)) {
      await body?.cancel();
      if (status === 416) await rm(partial, {force: true}); // more bytes here than there: another file
      if (status >= 400 && status < 500 && ![408, 416, 429].includes(status))
        throw new Fault('INSTALL_FAILED', `cannot download ${download.url}: HTTP ${status}`, {
          details: {url: download.url, status},
        });
      throw new Error(`HTTP ${status}`);
    }
    let done = resumes ? from : 0;
    for await (const chunk of body) {
      // Not opened before the first chunk is out of the stream, which drops what it holds when the connection breaks.
      file ??= await open(partial, resumes ? 'a' : 'w');
      timer[Symbol.dispose]();
      timer = watch();
      done += chunk.byteLength;
      if (done > download.sizeBytes) {
        await file.truncate(0);
        throw new Fault('INSTALL_FAILED', `${download.url} is longer than announced`, {details: {url: download.url}});
      }
      await file.write(chunk);
      download.onBytes?.(done);
    }
  } finally {
    timer[Symbol.dispose]();
    await file?.close();
  }
}

async function sizeOf(file: string): Promise<number> {
  try {
    return (await stat(file)).size;
  } catch {
    return 0;
  }
}
