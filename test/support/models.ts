import {copyFile, mkdtemp, rm} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {basename, join} from 'node:path';
import type {ExecutionContext} from 'ava';

/** Path of a tiny model that `npm test` has made. */
export function tinyModel(file: string): string {
  const folder = process.env['HEARSAY_TEST_MODELS'];
  if (folder === undefined) throw new Error('HEARSAY_TEST_MODELS is not set; run tests by: node scripts/test.ts FILE');
  return join(folder, file);
}

/** A folder of its own with copies of these tiny models, gone with the test. */
export async function modelFolder(t: Pick<ExecutionContext, 'teardown'>, ...files: readonly string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-models-'));
  t.teardown(async () => rm(folder, {recursive: true, force: true}));
  for (const file of files) await copyFile(tinyModel(file), join(folder, basename(file)));
  return folder;
}
