import {spawn} from 'node:child_process';
import type {ChildProcessByStdio} from 'node:child_process';
import type {Readable, Writable} from 'node:stream';
import {describeError, hasCode} from '@hearsay/core';
import type {Environment} from '@hearsay/core';
import {judgeExit, withoutFolders} from './judge-exit.ts';
import type {EngineExit} from './judge-exit.ts';
import {readProgress} from './load-progress.ts';
import type {LoadProgress} from './load-progress.ts';
import {MemoryKills} from './memory-kills.ts';
import {removePidFile, writePidFile} from './pid-files.ts';
import {signalGroup} from './signal-group.ts';
import {TextTail} from './text-tail.ts';
import {within} from './within.ts';

export interface ProcessOptions {
  readonly command: string;
  readonly arguments: readonly string[];
  readonly variables: Readonly<Record<string, string>>;
  /** Paths that must not appear in the reason of its end. */
  readonly files: readonly string[];
  readonly runFolder: string;
  /** The process says by itself how far it is. Only a hint: llama-server may stop to say it. */
  readonly says: (progress: LoadProgress) => void;
  /** Takes every line of stderr, with paths cut to file names. */
  readonly log: (line: string) => void;
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** Lines of stderr kept as the reason of a failure (R87). */
const stderrLinesMax = 20;

/** What llama-server in child mode understands as "end in order". Other programs see the end of their stdin. */
const goCommand = 'cmd_router_to_child:exit\n';

/** How long an exit waits for its last lines: a grandchild that keeps stderr open must not keep the exit secret. */
const lastLinesWithinMs = 500;

/** One operating system process in its own group, which ends with this process, however that ends. */
export class EngineProcess {
  /** Resolves once, when the process is gone and its pid file too. Never rejects. */
  readonly exited: Promise<EngineExit>;
  readonly #options: ProcessOptions;
  readonly #environment: Environment;
  readonly #child: Child;
  readonly #memoryKills = new MemoryKills();
  readonly #stderr: TextTail;
  #isOver = false;
  #noted: Promise<void> = Promise.resolve();

  constructor(options: ProcessOptions, environment: Environment) {
    this.#options = options;
    this.#environment = environment;
    this.#stderr = new TextTail(stderrLinesMax, line => options.log(withoutFolders(line, options.files)));
    this.#child = spawn(options.command, options.arguments, {
      env: options.variables,
      detached: true, // its own process group; as a child it is still ours
      stdio: ['pipe', 'pipe', 'pipe'],
      windowsHide: true,
    });
    this.#child.stdin.on('error', () => {}); // it may be gone before it reads the one line that we ever write
    this.#child.stderr.on('data', (bytes: Uint8Array) => this.#stderr.push(bytes));
    this.#child.stdout.on('data', progressLines(options.says));
    this.exited = this.#live();
    this.note();
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Writes down the command line, again when a wrapper script may have become llama-server. */
  note(): void {
    const {pid} = this;
    if (pid === undefined || this.#isOver) return;
    this.#noted = this.#noted
      .then(() => writePidFile(this.#options.runFolder, pid))
      .catch((error: unknown) => {
        const fields = {pid, error: describeError(error)};
        this.#environment.log('warn', 'cannot note an engine; after a crash of hearsay it would not be found', fields);
      });
  }

  /**
   * Asks it to go. SIGTERM alone is not enough for a llama-server in child mode: its thread that reads stdin is waited
   * for at the end, and it reads until a line or the end of the pipe comes.
   */
  terminate(): void {
    this.#signal('SIGTERM');
    this.#child.stdin.end(goCommand);
  }

  kill(): void {
    this.#signal('SIGKILL');
  }

  #signal(name: 'SIGTERM' | 'SIGKILL'): void {
    if (this.pid !== undefined && !this.#isOver) signalGroup(this.pid, name);
  }

  async #live(): Promise<EngineExit> {
    const closed = new Promise<void>(resolve => void this.#child.once('close', () => resolve()));
    const status = await exitStatus(this.#child);
    this.#isOver = true;
    if (status instanceof Error) return judgeStart(this.#options.command, status);
    const memoryKilled = this.#memoryKills.haveGrown();
    await within(this.#environment.clock, lastLinesWithinMs, closed);
    await this.#noted;
    if (this.pid !== undefined) await removePidFile(this.#options.runFolder, this.pid);
    const outOfMemory = await memoryKilled;
    return judgeExit({...status, outOfMemory, lines: this.#stderr.lines(), files: this.#options.files});
  }
}

interface ExitStatus {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

function exitStatus(child: Child): Promise<ExitStatus | Error> {
  return new Promise(resolve => {
    child.once('exit', (code, signal) => resolve({code, signal}));
    child.on('error', error => {
      if (child.pid === undefined) resolve(error); // else it is about a signal, and the process lives
    });
  });
}

function judgeStart(command: string, error: Error): EngineExit {
  const isMissing = hasCode(error, 'ENOENT', 'EACCES');
  return {
    reason: `cannot start ${command.replace(/^.*[/\\]/u, '')}: ${error.message.replace(command, '').trim()}`,
    lines: [],
    final: isMissing,
    portTaken: false,
  };
}

/** Finds the lines by which llama-server in child mode tells on stdout how far it is. */
function progressLines(tell: (progress: LoadProgress) => void): (bytes: Uint8Array) => void {
  const tail = new TextTail(1, line => {
    const progress = readProgress(line);
    if (progress !== undefined) tell(progress);
  });
  return bytes => tail.push(bytes);
}
