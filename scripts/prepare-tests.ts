import {createHash} from 'node:crypto';
import {readdirSync, readFileSync} from 'node:fs';
import {homedir} from 'node:os';
import {join} from 'node:path';
import {systemClock} from '@hearsay/cli';
import {formatProgress, installEngine} from '@hearsay/engine';
import {demoModelPath} from '@hearsay/models';
import {makeTinyModels} from './make-tiny-models.ts';

/** What outlives a checkout: engines, tiny models, compiled sources. */
export const cacheFolder: string = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'hearsay');

/** Variables that tests, benches and the demo find their llama-server and their tiny models by. */
export interface TestVariables {
  readonly HEARSAY_TEST_ENGINE: string | undefined;
  readonly HEARSAY_TEST_MODELS: string;
}

/** Makes sure of both, outside the checkout. Costs nothing when they are there. */
export async function prepareTests(): Promise<TestVariables> {
  return {HEARSAY_TEST_ENGINE: await testEngine(), HEARSAY_TEST_MODELS: await testModels()};
}

/** undefined when none can be had: the tests that need one say so. */
async function testEngine(): Promise<string | undefined> {
  const given = process.env['HEARSAY_TEST_ENGINE'];
  if (given !== undefined && given !== '') return given;
  let lastShown = '';
  try {
    const onProgress = (progress: Parameters<typeof formatProgress>[0]): void => {
      const part = `${progress.step} ${Math.floor((10 * progress.done) / Math.max(progress.total, 10))}`;
      if (part !== lastShown) console.log(`engine: ${formatProgress(progress)}`);
      lastShown = part;
    };
    return (
      await installEngine(
        {from: 'registry', cacheFolder, selfTestModel: demoModelPath, onProgress},
        {clock: systemClock},
      )
    ).command;
  } catch (error) {
    console.error(`engine: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
}

/** The folder is named after the scripts that fill it, so that another version of them makes another one. */
async function testModels(): Promise<string> {
  const given = process.env['HEARSAY_TEST_MODELS'];
  if (given !== undefined && given !== '') return given;
  const makers = join(import.meta.dirname, 'tiny-models');
  const scripts = [
    join(import.meta.dirname, 'make-tiny-models.ts'),
    ...readdirSync(makers).map(file => join(makers, file)),
  ];
  const hash = createHash('sha256');
  for (const script of scripts.toSorted()) hash.update(readFileSync(script));
  const folder = join(cacheFolder, 'tests', `models-${hash.digest('hex').slice(0, 16)}`);
  await makeTinyModels(folder);
  return folder;
}
