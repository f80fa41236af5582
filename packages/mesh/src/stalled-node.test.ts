import {mkdtemp, rm} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {setTimeout as sleep} from 'node:timers/promises';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {realEnvironment} from '../../../test/support/environment.ts';
import {isLinked, serve} from '../../../test/support/mesh-trial.ts';
import type {Seen} from '../../../test/support/mesh-trial.ts';
import {until} from '../../../test/support/until.ts';
import {startMesh} from './start-mesh.ts';

/** In a file of its own: it stops everything that runs beside it. */
async function linkedPair(t: ExecutionContext): Promise<readonly [Seen, Seen]> {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-mesh-'));
  t.teardown(async () => rm(folder, {recursive: true}));
  const start = async (nodeName: string, peers: readonly string[]): Promise<Seen> => {
    const settings = {mesh: 'home', nodeName, peers, port: 0, defaultPort: 4328, discovery: false};
    const identityFile = join(folder, `${nodeName}.key`);
    const mesh = await startMesh({...settings, identityFile, listen: ['/ip4/127.0.0.1/tcp/0']}, realEnvironment());
    t.teardown(async () => mesh[Symbol.asyncDispose]());
    return serve(mesh);
  };
  const first = await start('first', []);
  const port = /\/tcp\/(?<port>\d+)/u.exec(first.mesh.addresses()[0] ?? '')?.groups?.['port'];
  const second = await start('second', [`127.0.0.1:${port}`]);
  await until('they meet', () => isLinked(first, second));
  return [first, second];
}

/** The event loop stands still, as in a long computation, but others may have the processor. */
function stall(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)), 0, 0, ms);
}

test('nodes whose event loops stall again and again keep each other', async t => {
  const pair = await linkedPair(t);
  let lost = 0;
  for (const {links} of pair) {
    links.delete = node => {
      lost += 1;
      return Map.prototype.delete.call(links, node);
    };
  }
  for (let stalls = 0; stalls < 4; stalls += 1) {
    stall(4500); // longer than a silent peer is waited for
    await sleep(50);
  }
  await sleep(1000);
  t.is(lost, 0);
});
