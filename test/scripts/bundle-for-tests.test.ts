import {spawnSync} from 'node:child_process';
import {readFileSync} from 'node:fs';
import {join} from 'node:path';
import test from 'ava';

const hook = join(import.meta.dirname, '..', '..', 'scripts', 'bundled-modules.mjs');

/** The note that this very process has been started with. */
const note = process.env['HEARSAY_TEST_BUNDLE'] ?? '';

/** What a process prints that runs the script here, with bundled modules or with those that npm has installed. */
function printed(script: string, bundle: string | undefined): string {
  const {HEARSAY_TEST_BUNDLE: _, ...others} = process.env;
  const {stdout, stderr} = spawnSync(process.execPath, ['--import', hook, '--input-type=module', '-e', script], {
    cwd: import.meta.dirname,
    encoding: 'utf8',
    env: bundle === undefined ? others : {...others, HEARSAY_TEST_BUNDLE: bundle},
  });
  return stdout === '' ? stderr : stdout;
}

test('a test file runs with bundled modules', t => {
  const bundled = new Map<string, string>(JSON.parse(readFileSync(note, 'utf8')));
  t.true([...bundled.values()].includes(import.meta.resolve('ava')));
});

test('a bundled module exports the names of the one that it stands for, be it an ES module or CommonJS', t => {
  const script = `
    for (const name of ['zod', 'cborg', '@libp2p/crypto/keys', 'fastify', 'commander', 'multicast-dns']) {
      const module = await import(name);
      console.log(name, Object.keys(module).filter(key => key !== 'module.exports').toSorted().join(' '), typeof module.default);
    }`;
  t.is(printed(script, note), printed(script, undefined));
  t.regex(printed(script, undefined), /^fastify .*\berrorCodes\b/mu);
});

test('bundled modules share what each of them has once', t => {
  const script = `
    import {peerIdFromPrivateKey} from '@libp2p/peer-id';
    import {isPeerId, TypedEventEmitter} from '@libp2p/interface';
    import {generateKeyPair} from '@libp2p/crypto/keys';
    import {createLibp2p} from 'libp2p';
    const node = await createLibp2p({start: false});
    console.log(isPeerId(peerIdFromPrivateKey(await generateKeyPair('Ed25519'))), import.meta.resolve('libp2p'));
    console.log(node.components.events instanceof TypedEventEmitter);`;
  const [isPeerId, file, isEmitter] = printed(script, note).trim().split(/\s+/u);
  t.deepEqual([isPeerId, isEmitter], ['true', 'true']);
  t.true(file?.includes('/node_modules/.cache/test-modules/'));
});
