import {encodeSketch} from '@hearsay/core';
import type {Affinity} from './affinity.ts';
import type {ClusterDeps} from './join-cluster.ts';

/** Twice as often made no difference in the simulation, and it is the largest record there is. */
const periodMs = 15_000;

export interface SketchingDeps extends Pick<ClusterDeps, 'clock' | 'engines' | 'log' | 'mesh'> {
  readonly affinity: Affinity;
}

/** Tells the mesh now and then what this node's engines have read, and forgets it when they are unloaded. */
export function startSketching({boot}: {readonly boot: number}, deps: SketchingDeps): AsyncDisposable {
  const {affinity, clock, engines, log, mesh} = deps;
  let sequence = 0;
  let told = '';
  let publishing: Promise<void> = Promise.resolve();

  async function publish(): Promise<void> {
    const prompts = affinity.sketch();
    const state = [...prompts].map(([digest, hashes]) => `${digest} ${[...hashes].join()}`).join('\n');
    if (state === told) return;
    told = state;
    sequence += 1;
    try {
      await mesh.publish(await mesh.sign(encodeSketch({kind: 'sketch', node: mesh.self, boot, sequence, prompts})));
    } catch (error) {
      log('debug', 'could not tell what was read here', {error: String(error)});
    }
  }

  const watch = engines.onChange(() => {
    if (affinity.sketch().size === 0) return;
    const ready = new Set(engines.engines().flatMap(({state, model}) => (state === 'ready' ? [model.digest] : [])));
    for (const digest of affinity.sketch().keys()) if (!ready.has(digest)) affinity.forget(digest);
  });
  let timer: Disposable;
  const tick = (): void => {
    publishing = publish();
    timer = clock.after(periodMs, tick);
  };
  timer = clock.after(periodMs, tick);

  return {
    async [Symbol.asyncDispose]() {
      watch[Symbol.dispose]();
      timer[Symbol.dispose]();
      await publishing;
    },
  };
}
