import {spawn} from 'node:child_process';
import type {ChildProcess} from 'node:child_process';
import {randomUUID} from 'node:crypto';
import {once} from 'node:events';
import {mkdtemp, rm} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import type {ExecutionContext} from 'ava';
import {systemClock} from '@hearsay/cli';

export interface DaemonOptions {
  readonly name?: string;
  /** Only daemons of one mesh meet; a name of its own unless given. */
  readonly mesh?: string;
  readonly meshPort?: number;
  readonly peers?: readonly string[];
  /** Folders with models. Without any, and without `demo`, the node has none. */
  readonly models?: readonly string[];
  /** Offers the toy model that ships with hearsay. */
  readonly demo?: boolean;
  /** The llama-server to run; that of HEARSAY_TEST_ENGINE unless given, else none. */
  readonly engine?: string;
  /** `host:port`; any free port of loopback unless given. */
  readonly gateway?: string;
  /** Keep it to start a second daemon on the same files; it is then the caller's to remove. */
  readonly dataFolder?: string;
  /** Further arguments of `hearsay serve`. */
  readonly flags?: readonly string[];
  readonly variables?: Readonly<Record<string, string>>;
  /** Program and arguments to start it with, such as `ip netns exec NAME`. */
  readonly within?: readonly string[];
  /** Lets the launcher restart it with what a daemon needs, as it does for everybody else. */
  readonly restarts?: boolean;
  /** The `hearsay.mjs` of another checkout. */
  readonly launcher?: string;
}

/** What a command has printed and how it ended. */
interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A real `hearsay serve` in a process of its own. */
export interface Daemon {
  /** Of its gateway. */
  readonly url: string;
  /** Its process; that of the wrapper when started `within` one. */
  readonly pid: number;
  readonly name: string;
  readonly dataFolder: string;
  /** What it was started within, such as `ip netns exec NAME`. */
  readonly within: readonly string[];
  /** The banner. */
  stdout(): string;
  /** Its log so far. */
  stderr(): string;
  /** Resolves with the exit code once it has ended, 128 + the signal when one killed it. */
  readonly exited: Promise<number>;
  /** Asks it to end and waits; resolves with its exit code. */
  stop(): Promise<number>;
  /** Sends a signal and does not wait. */
  kill(signal: NodeJS.Signals): void;
  /** Runs another command of the CLI against this daemon. */
  cli(...args: readonly string[]): Promise<CommandResult>;
}

/** Node 24, wherever the tests run. */
const node = process.execPath;
const launcher = join(import.meta.dirname, '..', '..', 'packages', 'cli', 'bin', 'hearsay.mjs');

/** What the launcher restarts a daemon with. Said at once it spares each a second start of Node, a tenth of its own. */
const afterRestart = {flags: ['--max-semi-space-size=8'], variables: {MALLOC_MMAP_THRESHOLD_: '1048576'}} as const;

/** A cold start compiles all sources and may share two cores with other tests. */
const readyMsMax = 60_000;

/** Twice what a daemon allows itself for a clean end. */
const stopMsMax = 10_000;

/** Starts a daemon and resolves when it is ready. It ends with the test, whatever becomes of that. */
export async function startDaemon(t: Pick<ExecutionContext, 'teardown'>, options: DaemonOptions = {}): Promise<Daemon> {
  const name = options.name ?? `node-${randomUUID().slice(0, 8)}`;
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-test-'));
  t.teardown(async () => rm(folder, {recursive: true, force: true, maxRetries: 3}));
  const dataFolder = options.dataFolder ?? join(folder, 'data');
  const variables = daemonVariables(folder, options);

  const [program = node, ...args] = [
    ...(options.within ?? []),
    node,
    ...(options.restarts === true ? [] : afterRestart.flags),
    options.launcher ?? launcher,
    'serve',
    ...daemonFlags(name, dataFolder, options),
  ];
  const child = spawn(program, args, {env: variables, stdio: ['ignore', 'pipe', 'pipe']});
  const exited = exitCodeOf(child);
  const kill = (signal: NodeJS.Signals): void => void child.kill(signal);
  const stop = async (): Promise<number> => {
    kill('SIGTERM');
    using limits = new DisposableStack();
    limits.use(systemClock.after(stopMsMax, () => kill('SIGKILL')));
    return await exited;
  };
  t.teardown(stop);

  const stderr = collect(child.stderr);
  const stdout = collect(child.stdout);
  const url = await readyUrl(child, stdout, () => `${stdout()}\n${stderr()}`).catch(async (error: unknown) => {
    await stop(); // else it might come up late, and nobody would know of it
    throw error;
  });
  return {
    url,
    pid: child.pid ?? 0,
    name,
    dataFolder,
    within: options.within ?? [],
    stdout,
    stderr,
    exited,
    stop,
    kill,
    cli: (...commandArgs) => runCli(commandArgs, {...variables, HEARSAY_HOST: url}, options.within),
  };
}

/** Runs one command of the CLI to its end. */
export async function runCli(
  args: readonly string[],
  variables: NodeJS.ProcessEnv = process.env,
  within: readonly string[] = [],
): Promise<CommandResult> {
  const [program = node, ...rest] = [...within, node, launcher, ...args];
  const child = spawn(program, rest, {env: ofAProgram(variables), stdio: ['ignore', 'pipe', 'pipe']});
  const stdout = collect(child.stdout);
  const stderr = collect(child.stderr);
  return {code: await exitCodeOf(child), stdout: stdout(), stderr: stderr()};
}

/**
 * Nothing of this machine's own hearsay: neither its settings nor its files, except engines that are installed
 * already.
 */
function daemonVariables(
  folder: string,
  {demo = false, restarts = false, variables}: DaemonOptions,
): NodeJS.ProcessEnv {
  const isOurs = (key: string): boolean => key.startsWith('HEARSAY_') && key !== 'HEARSAY_SOURCES';
  const inherited = Object.entries(ofAProgram(process.env)).filter(([key]) => !isOurs(key));
  return {
    ...Object.fromEntries(inherited),
    XDG_CONFIG_HOME: join(folder, 'config'),
    XDG_DATA_HOME: join(folder, 'share'),
    HEARSAY_DEMO: String(demo),
    // None of the models that other programs have on this machine.
    HEARSAY_STORES: '',
    // The threads of an engine spin while they wait for each other, which costs more than they gain on shared cores.
    HEARSAY_THREADS: '1',
    ...(restarts ? {} : afterRestart.variables),
    ...variables,
  };
}

/** What a run of tests has compiled is for tests; a program knows where it keeps its own. */
function ofAProgram(variables: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const {NODE_COMPILE_CACHE: compiled, ...others} = variables;
  return compiled === process.env['NODE_COMPILE_CACHE'] ? others : variables;
}

function daemonFlags(name: string, dataFolder: string, options: DaemonOptions): readonly string[] {
  const engine = options.engine ?? process.env['HEARSAY_TEST_ENGINE'];
  const own = ['--no-install', '--name', name, '--data-dir', dataFolder];
  const mesh = ['--mesh', options.mesh ?? `test-${randomUUID()}`, '--mesh-port', String(options.meshPort ?? 0)];
  const gateway = ['--gateway', options.gateway ?? '127.0.0.1:0'];
  return [
    ...own,
    ...mesh,
    ...gateway,
    ...(engine === undefined ? [] : ['--engine', engine]),
    ...(options.peers ?? []).flatMap(peer => ['--peer', peer]),
    ...(options.models ?? []).flatMap(models => ['--models', models]),
    ...(options.flags ?? []),
  ];
}

/** From the last line of the banner. Throws with all it said when it ended, or was not ready in time. */
async function readyUrl(child: ChildProcess, stdout: () => string, said: () => string): Promise<string> {
  using limits = new DisposableStack();
  return await new Promise<string>((resolve, reject) => {
    const fail = (what: string): void => reject(new Error(`the daemon ${what}:\n${said()}`));
    limits.use(systemClock.after(readyMsMax, () => fail(`was not ready within ${readyMsMax / 1000} s`)));
    child.once('close', () => fail('ended before it was ready'));
    child.stdout?.on('data', () => {
      const url = /^ready: (\S+)\n/mu.exec(stdout())?.[1];
      if (url !== undefined) resolve(url);
    });
  });
}

function collect(stream: NodeJS.ReadableStream | null): () => string {
  let text = '';
  stream?.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  return () => text;
}

async function exitCodeOf(child: ChildProcess): Promise<number> {
  const [code, signal]: (number | string | null)[] = await once(child, 'close');
  return typeof code === 'number' ? code : signal === 'SIGKILL' ? 137 : 143;
}
