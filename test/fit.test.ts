import {spawn} from 'node:child_process';
import {once} from 'node:events';
import test from 'ava';
import {estimateFit} from '@hearsay/core';
import type {EngineSize, FitConditions, ModelShape} from '@hearsay/core';
import {startModelStore} from '@hearsay/models';
import {makeModelPlace, named, until} from './support/model-place.ts';
import {testEngine, tinyModelPath} from './support/engine-trial.ts';
import {copyFile} from 'node:fs/promises';
import {basename, join} from 'node:path';

const mebibyte = 1024 * 1024;
const plain: FitConditions = {place: 'ram', keyType: 'f16', valueType: 'f16'};

/** What llama-server logs of its buffers, in MiB, before it serves. */
interface Buffers {
  readonly model: number;
  readonly cache: number;
  readonly compute: number;
}

async function loggedBuffers(file: string, {slots, context}: EngineSize, extra: readonly string[]): Promise<Buffers> {
  const size = ['-c', String(slots * context), '-np', String(slots), '--cache-ram', '0', '-t', '1'];
  const args = ['-m', file, ...size, '--no-repack', '--no-ui', '--offline', '--port', '0', '-lv', '4', ...extra];
  const child = spawn(testEngine(), args, {stdio: ['ignore', 'ignore', 'pipe']});
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text;
    if (log.includes('listening on')) child.kill('SIGKILL');
  });
  await once(child, 'close');
  const logged = (name: string): number =>
    [...log.matchAll(new RegExp(`${name} buffer size = +([\\d.]+) MiB`, 'gu'))]
      .map(([, mebibytes]) => Number(mebibytes))
      .reduce((sum, mebibytes) => sum + mebibytes, 0);
  return {model: logged('model'), cache: logged('KV'), compute: logged('compute')};
}

/** As the model store reads it. */
async function shapeOf(t: Parameters<typeof makeModelPlace>[0], file: string): Promise<ModelShape> {
  const place = await makeModelPlace(t, []);
  await copyFile(file, join(place.models, basename(file)));
  await using store = await startModelStore(place.config, place.environment);
  const name = basename(file, '.gguf');
  await until('the header is read', () => named(store, name)?.shape !== undefined);
  const shape = named(store, name)?.shape;
  if (shape === undefined) throw new Error('no shape');
  return shape;
}

const loads: readonly (readonly [Parameters<typeof tinyModelPath>[0], EngineSize, Partial<FitConditions>])[] = [
  ['tiny-count-F16', {slots: 1, context: 2048}, {}],
  ['tiny-count-F16', {slots: 4, context: 2048}, {}],
  ['tiny-count-Q8_0', {slots: 2, context: 2048}, {keyType: 'q8_0', valueType: 'q8_0'}],
  ['tiny-other-Q4_0', {slots: 3, context: 1792}, {}],
  ['tiny-deep-F16', {slots: 1, context: 2048}, {}],
  ['tiny-deep-F16', {slots: 2, context: 4096}, {}],
];

for (const [name, size, types] of loads) {
  const how = `${size.slots} × ${size.context}${types.keyType === undefined ? '' : ` at ${types.keyType}`}`;
  test(`the estimate for ${name}, ${how}, is what llama-server logs`, async t => {
    const file = await tinyModelPath(name);
    const conditions = {...plain, ...types};
    const fit = estimateFit(await shapeOf(t, file), size, conditions);
    const logged = await loggedBuffers(file, size, ['-ctk', conditions.keyType, '-ctv', conditions.valueType]);
    // The log rounds to 0.01 MiB; the mapped file begins at a page.
    t.true(Math.abs(fit.weightsBytes / mebibyte - logged.model) < 0.02, `weights: ${logged.model}`);
    t.true(Math.abs(fit.cacheBytes / mebibyte - logged.cache) < 0.011, `cache: ${logged.cache}`);
    t.true(Math.abs(fit.computeBytes / mebibyte - logged.compute) < 0.03, `compute: ${logged.compute}`);
  });
}

for (const name of ['tiny-embed-F16', 'tiny-rerank-F16'] as const) {
  test(`the estimate for ${name}, which keeps no cache, is near what llama-server logs`, async t => {
    const file = await tinyModelPath(name);
    const size = {slots: 1, context: 512};
    const fit = estimateFit(await shapeOf(t, file), size, plain);
    const logged = await loggedBuffers(file, size, ['--embeddings']);
    t.true(Math.abs(fit.weightsBytes / mebibyte - logged.model) < 0.02, `weights: ${logged.model}`);
    t.is(fit.cacheBytes, 0);
    t.is(logged.cache, 0);
    t.true(Math.abs(fit.computeBytes / mebibyte - logged.compute) < 0.8, `compute: ${logged.compute}`);
  });
}
