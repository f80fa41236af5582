import type {Clock, Cluster, ModelReport} from '@hearsay/core';
import type {JsonObject} from '../json.ts';
import {badRequest} from '../problem.ts';
import type {Problem} from '../problem.ts';
import type {Blobs} from './blobs.ts';
import type {FindModel} from './known-model.ts';
import {modelFile} from './manage.ts';

/** A store looks again within seconds after something was added, or went. */
const noticedWithinMs = 20_000;
const lookEveryMs = 50;

interface Offer {
  readonly cluster: Pick<Cluster, 'models'>;
  readonly blobs: Blobs;
  readonly clock: Clock;
}

/**
 * A file that was uploaded becomes a model when it is first named; waits until that is known. What the store finds to
 * be no model is refused with the reason, and is offered no longer: nobody could remove it from the list of models.
 */
export async function offerBlob(body: JsonObject, find: FindModel, offer: Offer): Promise<Problem | undefined> {
  const {blobs} = offer;
  const file = modelFile(body);
  if (file === undefined || find(file.digest) || !(await blobs.has(file.digest))) return undefined;
  return blobs.inTurn(file.name, async () => offerFile(file, find, offer));
}

async function offerFile(
  file: NonNullable<ReturnType<typeof modelFile>>,
  find: FindModel,
  {cluster, blobs, clock}: Offer,
): Promise<Problem | undefined> {
  if (find(file.digest)) return undefined; // another request has made it one meanwhile
  const before = new Set(cluster.models().map(({digest}) => digest));
  const offered = await blobs.offer(file.digest, file.name);
  const isModel = (): boolean => find(file.digest) !== undefined;
  const broken = (): ModelReport | undefined =>
    cluster.models().find(model => !before.has(model.digest) && isBroken(model) && isNamedAfter(model, offered));
  const wait = async (isOver: () => boolean): Promise<void> => {
    const untilMs = clock.monotonicMs() + noticedWithinMs;
    while (!isOver() && clock.monotonicMs() < untilMs) await clock.sleep(lookEveryMs);
  };
  await wait(() => isModel() || broken() !== undefined);
  const problem = isModel() ? undefined : broken()?.problem;
  if (problem === undefined) return undefined;
  await blobs.withdraw(file.digest, file.name);
  await wait(() => broken() === undefined); // else the next attempt would be taken for an old one
  return badRequest(`${file.name} cannot be made a model: ${problem}`, {code: 'invalid_model', param: 'files'});
}

/** Only this node tells what is wrong with a file, which then has no digest that could be asked for. */
function isBroken({problem, nodes}: ModelReport): boolean {
  return problem !== undefined && nodes.some(({local}) => local);
}

/** The store names a model after its file, and one shard of several without its number. */
function isNamedAfter({names}: ModelReport, fileName: string): boolean {
  return names.includes(fileName.replace(/(?:-\d{5}-of-\d{5})?\.gguf$/u, ''));
}
