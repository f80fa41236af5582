/** Two LANs behind NAT and public members that relay between them, as the tests of relays need them. */
import {spawn} from 'node:child_process';
import {randomUUID} from 'node:crypto';
import {once} from 'node:events';
import {mkdtemp, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import type {ExecutionContext} from 'ava';
import {startDaemon} from './daemon.ts';
import type {Daemon} from './daemon.ts';
import {modelFolder} from './models.ts';
import {curl, meetMsMax, says} from './net-trial.ts';
import {nattedLans} from './network-namespaces.ts';
import type {NattedLans} from './network-namespaces.ts';
import type {Ends} from './shared.ts';
import {timed, until} from './until.ts';

export interface NatTrial {
  readonly nat: NattedLans;
  readonly left: Daemon;
  readonly right: Daemon;
  readonly relay: Daemon;
  /** Starts the relay again, on the same files. */
  readonly startRelay: () => Promise<Daemon>;
  /** A further public member that relays. */
  readonly startSecondRelay: () => Promise<Daemon>;
  /** What the paced model is saying comes to its end at once. */
  readonly hurry: () => void;
}

/** A token of the paced model takes this long. */
const pacedMs = 100;

interface NatOptions {
  /** What the left node tells others about where it is reached. */
  readonly announce?: (nat: NattedLans) => readonly string[];
  /** The right node also offers `stamps-1`, whose tokens come at the pace that a request asks for. */
  readonly paced?: boolean;
}

/** A public member that relays, and one node behind each router; both have joined with a code and nothing else. */
export async function twoLans(
  t: Ends & Partial<ExecutionContext>,
  {announce, paced = false}: NatOptions = {},
): Promise<NatTrial> {
  t.timeout?.(400_000);
  const nat = nattedLans(t);
  const mesh = `test-${randomUUID().slice(0, 8)}`;
  const relayData = await scratchFolder(t);
  const startPublic = async (host: 'public' | 'second', name: string, dataFolder: string): Promise<Daemon> =>
    startDaemon(t, {name, mesh, meshPort: 4328, within: nat.within(host), dataFolder, flags: ['--relay']});
  const startRelay = async (): Promise<Daemon> => startPublic('public', 'relay', relayData);
  const announced = announce?.(nat) ?? [];
  const engine = paced ? await pacedEngine(t, nat.within('right')) : undefined;
  const [relay, left, right] = await Promise.all([
    startRelay(),
    startDaemon(t, {
      name: 'left',
      mesh,
      meshPort: 4328,
      within: nat.within('left'),
      flags: announced.flatMap(address => ['--announce', address]),
    }),
    startDaemon(t, {
      name: 'right',
      mesh: `${mesh}-other`,
      meshPort: 4328,
      models: [await modelFolder(t, 'tiny-count-F16.gguf')],
      within: nat.within('right'),
      flags: engine === undefined ? [] : ['--config', engine.config],
    }),
  ]);
  await says(relay, 'lock');
  const joins = async (daemon: Daemon): Promise<void> => {
    const code = /hearsay join (\S+)/u.exec(await says(relay, 'invite'))?.[1] ?? '';
    const joined = await timed(async () => says(daemon, 'join', code));
    t.log?.(`${daemon.name} joined in ${Math.round(joined.ms)} ms`);
  };
  for (const daemon of [left, right]) await joins(daemon);
  return {
    nat,
    left,
    right,
    relay,
    startRelay,
    hurry: () => engine?.hurry(),
    async startSecondRelay() {
      const second = await startPublic('second', 'second', await scratchFolder(t));
      await joins(second);
      return second;
    },
  };
}

/** Gone with the test. */
export async function scratchFolder(t: Ends): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'hearsay-nat-'));
  t.teardown(async () => rm(made, {recursive: true, force: true, maxRetries: 3}));
  return made;
}

/** Arguments for curl. */
export function chat(tokens: number, content = 'count', stream = false): readonly string[] {
  const messages = [{role: 'user', content}];
  return ['-d', JSON.stringify({model: 'tiny-count-F16', max_tokens: tokens, stream, messages})];
}

/** An engine that writes tokens at a pace, and the config file that offers it. */
interface PacedEngine {
  readonly config: string;
  readonly hurry: () => void;
}

async function pacedEngine(t: Ends, within: readonly string[]): Promise<PacedEngine> {
  const script = join(import.meta.dirname, '..', 'fixtures', 'token-engine.ts');
  const [program, ...args] = [...within, process.execPath, script];
  const child = spawn(program, args, {stdio: ['ignore', 'pipe', 'inherit']});
  t.teardown(() => child.kill('SIGKILL'));
  const [line]: string[] = await once(child.stdout.setEncoding('utf8'), 'data');
  const file = join(await scratchFolder(t), 'config.toml');
  const url = `http://127.0.0.1:${(line ?? '').trim()}/1/v1`;
  await writeFile(file, `[[engines.external]]\nname = "paced"\nurl = "${url}"\nslots = 4\n`);
  return {config: file, hurry: () => void child.kill('SIGUSR2')};
}

/** A stream of that many seconds from the model whose tokens come at a pace. */
export async function pacedStream(daemon: Daemon, seconds: number): Promise<string> {
  const tokens = Math.round((1000 * seconds) / pacedMs);
  const messages = [{role: 'user', content: 'count'}];
  const question = {model: 'stamps-1', max_tokens: tokens, pace_ms: pacedMs, stream: true, messages};
  return curl(daemon, '/v1/chat/completions', '-N', '-m', String(4 * seconds + 60), '-d', JSON.stringify(question));
}

export async function offersPaced(daemon: Daemon): Promise<unknown> {
  return until(
    'the paced model is known',
    async () => (await curl(daemon, '/v1/models')).includes('stamps-1'),
    meetMsMax,
  );
}
