import {mkdir, mkdtemp, readdir, readlink, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {toDigest} from '@hearsay/core';
import type {ModelReport} from '@hearsay/core';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {digest} from '../../../../test/support/builders.ts';
import {realEnvironment} from '../../../../test/support/environment.ts';
import {modelReport} from '../../../../test/support/scripted-cluster.ts';
import {until} from '../../../../test/support/until.ts';
import type {Problem} from '../problem.ts';
import {openBlobs} from './blobs.ts';
import type {FindModel} from './known-model.ts';
import {offerBlob} from './offer-blob.ts';

const [good, bad] = [digest('a'), digest('b')];

/** A place for blobs, of which the test says what the store of models finds. */
async function trial(t: ExecutionContext) {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-offer-'));
  t.teardown(async () => rm(folder, {recursive: true, force: true}));
  await mkdir(join(folder, 'blobs'));
  for (const each of [good, bad]) await writeFile(join(folder, 'blobs', each.replace(':', '-')), '');
  const {clock, random} = realEnvironment();
  const models: ModelReport[] = [];
  const find: FindModel = asked => {
    const report = models.find(({digest: known}) => known === asked);
    return report && {kind: 'known', asked, target: asked, report, preset: undefined};
  };
  let looks = 0;
  const cluster = {
    models: () => {
      looks += 1;
      return models;
    },
  };
  const service = {blobs: openBlobs(folder, random), clock, cluster};
  return {
    folder,
    models,
    /** How often the models have been looked at. */
    looks: () => looks,
    create: async (name: string, of: string): Promise<Problem | undefined> =>
      offerBlob({model: 'mine', files: {[name]: of}}, find, service),
  };
}

let count = 0;

/** Has no digest of its own, because it is no model. */
function broken(name: string): ModelReport {
  count += 1;
  return modelReport({name, names: [name], digest: toDigest(`unproven:${count}`), problem: 'it is incomplete'});
}

/** Where all links lead that are there; one that is withdrawn meanwhile, and its folder, are none. */
async function linksIn(folder: string): Promise<readonly string[]> {
  const places = (await readdir(folder)).filter(name => name !== 'blobs').map(name => join(folder, name));
  const links = await Promise.all(
    places.map(async place => {
      const names = await readdir(place).catch(() => []);
      return Promise.all(names.map(async name => readlink(join(place, name)).catch(() => undefined)));
    }),
  );
  return links.flat().filter(path => path !== undefined);
}

test('a file is not blamed for another one whose name its own begins with', async t => {
  const {folder, models, looks, create} = await trial(t);
  const creating = create('model-q8.gguf', good);
  await until('it is offered', async () => (await linksIn(folder)).length > 0);
  models.push(broken('model'));
  const before = looks();
  await until('it has been seen', () => looks() > before + 2);
  models.push(modelReport({name: 'model-q8', names: ['model-q8'], digest: good}));
  t.is(await creating, undefined);
});

test('a file that has become a model is one, whatever else of its name is broken', async t => {
  const {folder, models, create} = await trial(t);
  const creating = create('model.gguf', good);
  await until('it is offered', async () => (await linksIn(folder)).length > 0);
  models.push(broken('model'), modelReport({digest: good}));
  t.is(await creating, undefined);
  t.is((await linksIn(folder)).length, 1);
});

test('of two files with one name each is told what is wrong with itself', async t => {
  const {folder, models, create} = await trial(t);
  const both = [create('model.gguf', bad), create('model.gguf', good)];
  const offered = async (each: string): Promise<boolean> =>
    (await linksIn(folder)).some(path => path.endsWith(each.replace(':', '-')));
  await until('the first is offered', async () => offered(bad));
  const wrong = broken('model');
  models.push(wrong);
  await until('it is withdrawn', async () => !(await offered(bad)));
  models.splice(models.indexOf(wrong), 1);
  await until('the other is offered', async () => offered(good));
  models.push(modelReport({name: 'model', names: ['model'], digest: good}));
  const [first, second] = await Promise.all(both);
  t.like(first, {kind: 'problem', message: 'model.gguf cannot be made a model: it is incomplete'});
  t.is(second, undefined);
});
