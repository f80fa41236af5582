import {mkdtemp, rm} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {Fault} from '@hearsay/core';
import type {Environment, Link} from '@hearsay/core';
import {realEnvironment} from '../../../test/support/environment.ts';
import {never, serve} from '../../../test/support/mesh-trial.ts';
import type {Seen} from '../../../test/support/mesh-trial.ts';
import {until} from '../../../test/support/until.ts';
import type {MeshConfig} from './mesh-parts.ts';
import {startMesh} from './start-mesh.ts';
import type {AdministeredMesh} from './start-mesh.ts';

const dayMs = 24 * 60 * 60_000;

/** Starts nodes on loopback; a second start with one name is the same node again. */
async function place(t: ExecutionContext) {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-closed-'));
  const meshes: AdministeredMesh[] = [];
  const sights = new Map<AdministeredMesh, Seen>();
  t.teardown(async () => {
    await Promise.all(meshes.map(async mesh => mesh[Symbol.asyncDispose]()));
    await rm(folder, {recursive: true});
  });
  const start = async (name: string, changes: Partial<MeshConfig> = {}, environment = realEnvironment()) => {
    const settings = {mesh: 'home', nodeName: name, port: 0, defaultPort: 4328, discovery: false, peers: []};
    const listen = ['/ip4/127.0.0.1/tcp/0'];
    const identityFile = join(folder, `${name}.key`);
    const mesh = await startMesh({...settings, listen, identityFile, ...changes}, environment);
    meshes.push(mesh);
    sights.set(mesh, await serve(mesh));
    return mesh;
  };
  const seen = (mesh: AdministeredMesh): Seen => {
    const sight = sights.get(mesh);
    if (sight === undefined) throw new Error('it was not started here');
    return sight;
  };
  return {start, seen};
}

async function codeOf(mesh: AdministeredMesh, lifeMs = dayMs): Promise<string> {
  return (await mesh.admin.invite({role: 'member', lifeMs})).code ?? '';
}

function isWith(mesh: AdministeredMesh, other: AdministeredMesh): boolean {
  return mesh.links().some(({node, admitted}) => admitted && node === other.self);
}

/** The check for a renewal, once a minute, comes every 1.2 s. */
function hasty(): Environment {
  const environment = realEnvironment();
  const {clock} = environment;
  const after = (ms: number, run: () => void): Disposable => clock.after(ms > 20_000 ? ms / 50 : ms, run);
  return {...environment, clock: {...clock, after}};
}

async function refusal(t: ExecutionContext, promise: Promise<unknown>): Promise<string> {
  const error = await t.throwsAsync(promise, {instanceOf: Fault});
  t.is(error.code, 'BAD_REQUEST');
  return error.message;
}

test('an invite lets in one node, and no second one; an expired or revoked one lets in nobody', async t => {
  const {start} = await place(t);
  const [a, b, c] = [await start('a'), await start('b'), await start('c')];
  t.regex(await refusal(t, a.admin.invite({role: 'member', lifeMs: dayMs})), /hearsay lock/u);
  await a.admin.lock(never);
  const code = await codeOf(a);
  await b.admin.join(code, never);
  await until('they meet', () => isWith(a, b) && isWith(b, a));
  t.regex(await refusal(t, c.admin.join(code, never)), /used already/u);
  t.regex(await refusal(t, c.admin.join(await codeOf(a, 1), never)), /has expired/u);
  const withdrawn = await a.admin.invite({role: 'member', lifeMs: dayMs});
  t.is(await a.admin.revoke(withdrawn.id), `invite ${withdrawn.id}`);
  t.regex(await refusal(t, c.admin.join(withdrawn.code ?? '', never)), /was revoked/u);
  t.false(isWith(a, c));
  t.regex(await refusal(t, b.admin.invite({role: 'member', lifeMs: dayMs})), /may not invite; do it on/u);
});

test('membership survives restarts, and the way back into the mesh is known without multicast', async t => {
  const {start} = await place(t);
  const a = await start('a');
  const b = await start('b');
  await a.admin.lock(never);
  await b.admin.join(await codeOf(a), never);
  await until('they meet', () => isWith(a, b));
  await b[Symbol.asyncDispose]();
  await until('it is gone', () => !isWith(a, b));
  const again = await start('b');
  t.is(again.self, b.self);
  await until('they meet again', () => isWith(a, again) && isWith(again, a));
});

test('a pass renews itself while a keeper is there', async t => {
  const {start} = await place(t);
  const a = await start('a', {passLifeMs: 30_000}, hasty());
  const b = await start('b', {passLifeMs: 30_000}, hasty());
  await a.admin.lock(never);
  await b.admin.join(await codeOf(a), never);
  const ends = (): number => {
    const seconds = b.admin.report().members[0]?.expiresSeconds ?? 0;
    return Date.now() + seconds * 1000;
  };
  const first = ends();
  await until('it ends later than it did', () => ends() > first + 5000, 60_000);
  await until('the other knows', () => isWith(a, b));
  t.pass();
});

test('a node that left is open again, and those of the closed mesh let it go', async t => {
  const {start} = await place(t);
  const a = await start('a');
  const b = await start('b');
  await a.admin.lock(never);
  await b.admin.join(await codeOf(a), never);
  await until('they meet', () => isWith(a, b));
  const report = await b.admin.leave();
  t.is(report.mode, 'lan');
  await until('it is out', () => !isWith(a, b) && !isWith(b, a));
});

test('who joins or leaves a closed mesh lets go of everybody before, and forgets at once and afterwards what they said', async t => {
  const {start, seen} = await place(t);
  const [a, open] = [await start('a'), await start('open')];
  const b = await start('b', {peers: open.addresses()});
  await until('two meet in the open', () => isWith(b, open) && isWith(open, b));
  const forgotten: string[] = [];
  const modeOf = (mesh: AdministeredMesh): string => (mesh.secret() === undefined ? 'open' : 'closed');
  const who = (): string =>
    [a, open]
      .filter(other => isWith(b, other))
      .map(other => (other === a ? 'a' : 'open'))
      .join();
  seen(b).moved = () => void forgotten.push(`${modeOf(b)}, with ${who() || 'nobody'}`);
  seen(a).moved = () => t.fail('its mesh is the same as before');
  await a.admin.lock(never);
  await b.admin.join(await codeOf(a), never);
  t.false(isWith(b, open), 'it tells an open node nothing of the closed mesh, not for a moment');
  t.regex(forgotten.splice(0).join('; '), /^closed, with open; closed, with (nobody|a)$/u);
  await until('it is with the members', () => isWith(a, b) && isWith(b, a));
  await b.admin.leave();
  t.false(isWith(b, a));
  t.regex(forgotten.join('; '), /^open, with a; open, with (nobody|open)$/u);
});

test('all know the founder by its name, and are told that it cannot be revoked', async t => {
  const {start} = await place(t);
  const [a, b, c] = [await start('anna'), await start('ben'), await start('cleo')];
  await a.admin.lock(never);
  await b.admin.join((await a.admin.invite({role: 'keeper', lifeMs: dayMs})).code ?? '', never);
  await c.admin.join(await codeOf(a), never);
  const named = (mesh: AdministeredMesh): readonly string[] => mesh.admin.report().members.map(({name}) => name);
  await until('both know', () => named(b).includes('anna') && named(c).includes('anna'));
  t.regex(await refusal(t, c.admin.invite({role: 'member', lifeMs: dayMs})), /do it on anna/u);
  t.regex(await refusal(t, b.admin.revoke('anna')), /anna founded this mesh.*cannot be revoked/u);
  t.regex(await refusal(t, a.admin.revoke('Anna')), /this node.*hearsay leave/u);
});

test('the only keeper does not leave others behind by mistake', async t => {
  const {start} = await place(t);
  const [a, b] = [await start('a'), await start('b')];
  await a.admin.lock(never);
  await a.admin.leave();
  await a.admin.lock(never);
  await b.admin.join(await codeOf(a), never);
  t.regex(await refusal(t, a.admin.leave()), /the only keeper: without it b .*--keeper.*--force/u);
  t.is((await a.admin.leave({force: true})).mode, 'lan');
  t.is((await b.admin.leave()).mode, 'lan');
});

function stateOf(at: AdministeredMesh, {self}: AdministeredMesh): string | undefined {
  return at.admin.report().members.find(({id}) => id === self)?.state;
}

test('members that have left hold no keeper back, and those that are only away do', async t => {
  const {start} = await place(t);
  const [a, b, c] = [await start('a'), await start('b'), await start('c')];
  await a.admin.lock(never);
  for (const each of [b, c]) {
    await each.admin.join(await codeOf(a), never);
    await until('they meet', () => isWith(a, each) && isWith(each, a));
  }
  await b[Symbol.asyncDispose]();
  await until('one is away', () => !isWith(a, b));
  await c.admin.leave();
  await until('the other one is known to have left', () => stateOf(a, c) === 'left');
  t.regex(await refusal(t, a.admin.leave()), /without it b can let nobody in/u);
  const again = await start('b');
  await until('it is back', () => isWith(a, again) && isWith(again, a));
  await again.admin.leave();
  await until('so is this one', () => stateOf(a, again) === 'left');
  t.is((await a.admin.leave()).mode, 'lan');
});

test('a member that left while a keeper was away is known to have left once the two meet', async t => {
  const {start} = await place(t);
  const [a, b] = [await start('a'), await start('b')];
  await a.admin.lock(never);
  await b.admin.join(await codeOf(a), never);
  await until('they meet', () => isWith(a, b) && isWith(b, a));
  await a[Symbol.asyncDispose]();
  await b.admin.leave();
  const again = await start('a', {peers: b.addresses()});
  const isRefused = (link: Link): boolean => link.node === b.self && link.refusal !== undefined;
  await until('it is not let in', () => again.links().some(isRefused));
  await until('it is known to have left', () => stateOf(again, b) === 'left');
  t.is((await again.admin.leave()).mode, 'lan');
});

test('members whose passes have ended hold no keeper back', async t => {
  const {start} = await place(t);
  const [a, b] = [await start('a', {passLifeMs: 10_000}), await start('b')];
  await a.admin.lock(never);
  await b.admin.join(await codeOf(a), never);
  await until('they meet', () => isWith(a, b));
  await b[Symbol.asyncDispose]();
  await until('the pass has ended', () => a.admin.report().members.some(({state}) => state === 'expired'));
  t.is((await a.admin.leave()).mode, 'lan');
});

test('a keeper that has left, or is away, is none that others still have', async t => {
  const {start} = await place(t);
  const [a, b, c] = [await start('a'), await start('b'), await start('c')];
  const keeperCode = async (): Promise<string> => (await a.admin.invite({role: 'keeper', lifeMs: dayMs})).code ?? '';
  await a.admin.lock(never);
  await b.admin.join(await keeperCode(), never);
  await c.admin.join(await codeOf(a), never);
  const known = (mesh: AdministeredMesh): number => mesh.admin.report().members.length;
  await until('all know each other', () => [a, b, c].every(mesh => known(mesh) === 3) && isWith(b, c));
  await a[Symbol.asyncDispose]();
  await until('the founder is away', () => !isWith(b, a));
  t.regex(
    await refusal(t, b.admin.leave()),
    /no other keeper is connected \(a may be gone\): without this node c .*--force/u,
  );
  const again = await start('a', {peers: b.addresses()});
  await until('it is back', () => isWith(b, again) && isWith(again, b));
  await again.admin.leave({force: true});
  await until('the founder has left', () => stateOf(b, again) === 'left' && !isWith(b, again));
  t.regex(await refusal(t, b.admin.leave()), /the only keeper: without it c /u);
});

test('members share a secret that was never told to anybody else, and a new mesh has another one', async t => {
  const {start} = await place(t);
  const [a, b, c] = [await start('a'), await start('b'), await start('c')];
  t.is(a.secret(), undefined);
  await a.admin.lock(never);
  await b.admin.join(await codeOf(a), never);
  const secret = a.secret();
  t.is(secret?.length, 32);
  t.deepEqual(b.secret(), secret);
  await c.admin.lock(never);
  t.notDeepEqual(c.secret(), secret);
  await b.admin.leave();
  t.is(b.secret(), undefined);
});
