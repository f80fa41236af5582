import {once} from 'node:events';
import {createServer} from 'node:net';
import {describeError, Fault, timeLimit} from '@hearsay/core';
import type {EngineCall, Environment, LoadedFacts, Refusal, StoredModel} from '@hearsay/core';
import {engineArguments, engineEnvironment} from './engine-arguments.ts';
import type {EngineSettings} from './engine-arguments.ts';
import {EngineProcess} from './engine-process.ts';
import {isAskedToEnd} from './is-asked-to-end.ts';
import type {EngineExit} from './judge-exit.ts';
import {LlamaClient} from './llama-client.ts';
import type {Call, Look} from './llama-client.ts';
import {readProps} from './read-props.ts';
import {within} from './within.ts';

/** How engines are started on this machine. */
export interface LaunchSettings {
  readonly command: string;
  readonly leadingArguments: readonly string[];
  readonly runFolder: string;
  /** The variables that the child's own are chosen from. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** A port that is free now; replaced only by tests. */
  readonly choosePort?: () => Promise<number>;
  /** Takes every line that engines write to stderr. */
  readonly log?: (line: string) => void;
  /** Waits until there is memory for it, and tells how large it may be. */
  readonly prepare?: (model: StoredModel) => Promise<EngineSettings>;
  /** Told when that is over. */
  readonly begins?: () => void;
}

/** Ports tried for one start; each can only be lost to a process that binds it within milliseconds. */
const portTriesMax = 5;

/** First and longest pause between two looks: a toy is ready in 20 ms, a large model loads for minutes. */
const probeMsMin = 10;
const probeMsMax = 250;

/** A look that takes longer is given up and repeated: the process is stopped, or starved while it loads. */
const probeTimeoutMs = 2_000;

/**
 * How long a broken connection waits for the news that its process died, the better reason. Longer than an exit
 * waits for its last lines; a connection that breaks while the process lives is rare.
 */
const deathNewsWithinMs = 2_000;

/** The sockets of a process that dies are closed a moment before this process hears of its end. */
const exitNewsMs = 250;

/** One llama-server with its HTTP door, from the choice of its port until it is gone. */
export class LlamaServer {
  /** Resolves once, when no process of it is left. Never rejects. */
  readonly exited: Promise<EngineExit>;
  readonly #launch: LaunchSettings;
  readonly #environment: Environment;
  readonly #apiKey: string;
  #process: EngineProcess | undefined;
  #client: LlamaClient | undefined;
  #lookNow = (): void => {};
  #exit: EngineExit | undefined;
  #stopReason: string | undefined;
  #killReason: string | undefined;
  #loadedShare: number | undefined;
  #ownArguments: readonly string[] = [];

  constructor(model: StoredModel, settings: EngineSettings, launch: LaunchSettings, environment: Environment) {
    this.#launch = launch;
    this.#environment = environment;
    this.#apiKey = Buffer.from(environment.random.bytes(24)).toString('base64url');
    this.exited = this.#live(model, settings);
  }

  get processId(): number | undefined {
    return this.#process?.pid;
  }

  /** Share of the model that is loaded, 0…1; undefined when llama-server does not tell. */
  get loadedShare(): number | undefined {
    return this.#loadedShare;
  }

  get received(): number {
    return this.#client?.received ?? 0;
  }

  async answers(msMax: number): Promise<boolean> {
    using limit = timeLimit(this.#environment.clock, msMax, 'a look at an engine');
    return (await this.#client?.look('/health', limit.signal))?.status === 200;
  }

  /** It does not listen any more, and lives on: so it is after a SIGTERM until its last client has gone. */
  async isEnding(msMax: number): Promise<boolean> {
    using limit = timeLimit(this.#environment.clock, msMax, 'a look at an engine');
    if ((await this.#client?.isRefused(limit.signal)) !== true) return false;
    await this.#environment.clock.sleep(exitNewsMs);
    return this.#process?.isOver === false;
  }

  /**
   * Its handler of SIGTERM waits for a lock that the interrupted thread holds itself. It goes on to listen, and
   * `/health` says that all is well; only what goes through its queue, as `/slots`, is never answered again.
   */
  async isStuck(): Promise<boolean> {
    const isAsked = (): boolean => isAskedToEnd(this.#process?.pid);
    return isAsked() && (await this.workingSlots()) === undefined && isAsked() && this.#process?.isOver === false;
  }

  /** Slots that it works on now; undefined when it does not tell in time. */
  async workingSlots(): Promise<number | undefined> {
    using limit = timeLimit(this.#environment.clock, probeTimeoutMs, 'a look at an engine');
    const answer = await this.#client?.look('/slots', limit.signal);
    // An engine that cannot tell is believed, else a cancel would cost a slot for long.
    if (answer?.status === 404 || answer?.status === 501) return 0;
    return answer?.status === 200 && Array.isArray(answer.json) ? answer.json.filter(isWorking).length : undefined;
  }

  /** What it says of its model as soon as it answers; undefined when it is gone before that. */
  async ready(): Promise<LoadedFacts | undefined> {
    const {clock} = this.#environment;
    for (let pauseMs = probeMsMin; this.#exit === undefined; pauseMs = Math.min(probeMsMax, pauseMs * 1.5)) {
      const told = await this.#props();
      if (told !== undefined) {
        this.#process?.note();
        return readProps(told.json, this.#ownArguments);
      }
      const {promise, resolve} = Promise.withResolvers<void>();
      this.#lookNow = resolve;
      await within(clock, pauseMs, Promise.race([this.exited, promise]));
    }
    return undefined;
  }

  /** Sends a request; only after `ready()`. */
  call(call: EngineCall, signal: AbortSignal): Call {
    if (this.#client === undefined) throw new Fault('INTERNAL', 'an engine was called before it was ready');
    return this.#client.call(call, signal);
  }

  /** Cuts what still runs, because llama-server does not end while a client is there, and asks it to go. */
  terminate(reason: string): void {
    this.#stopReason ??= reason;
    this.#client?.destroy();
    this.#process?.terminate();
  }

  /** With a reason, that is what its end and its broken requests are explained with. */
  kill(reason?: string): void {
    this.#killReason ??= reason;
    this.#process?.kill();
  }

  async #live(model: StoredModel, settings: EngineSettings): Promise<EngineExit> {
    try {
      const allowed = (await this.#launch.prepare?.(model)) ?? settings;
      this.#ownArguments = allowed.extraArguments;
      this.#launch.begins?.();
      const exit = await this.#liveOnSomePort(model, allowed);
      this.#exit = this.#killReason === undefined ? exit : {...exit, reason: this.#killReason};
    } catch (error) {
      const reason = `cannot start llama-server: ${describeError(error)}`;
      this.#exit = {reason, lines: [], final: false, portTaken: false};
    }
    this.#client?.destroy();
    return this.#exit;
  }

  async #liveOnSomePort(model: StoredModel, settings: EngineSettings): Promise<EngineExit> {
    const {command, leadingArguments, runFolder, variables, choosePort = freePort} = this.#launch;
    for (let tries = 1; ; tries += 1) {
      const port = await choosePort();
      if (this.#stopReason !== undefined) {
        return {reason: this.#stopReason, lines: [], final: false, portTaken: false};
      }
      this.#client = new LlamaClient({port, apiKey: this.#apiKey, explain: cause => this.#explain(model, cause)});
      this.#process = new EngineProcess(
        {
          command,
          arguments: [...leadingArguments, ...engineArguments(model, settings, port)],
          variables: engineEnvironment(variables, this.#apiKey),
          files: model.files,
          runFolder,
          says: progress => {
            if (progress.kind === 'ready') this.#lookNow();
            else this.#loadedShare = progress.share;
          },
          log: this.#launch.log ?? (() => {}),
        },
        this.#environment,
      );
      const exit = await this.#process.exited;
      if (!exit.portTaken || tries === portTriesMax || this.#stopReason !== undefined) return exit;
    }
  }

  /** Our key is asked for too: if the port was lost, whoever has it now may also answer /health. */
  async #props(): Promise<Look | undefined> {
    using limit = timeLimit(this.#environment.clock, probeTimeoutMs, 'a look at an engine');
    if ((await this.#client?.look('/health', limit.signal))?.status !== 200) return undefined;
    const answer = await this.#client?.look('/props', limit.signal);
    return answer?.status === 401 || answer?.status === 403 ? undefined : answer;
  }

  async #explain(model: StoredModel, cause: unknown): Promise<Fault> {
    const ended = this.#stopReason ?? this.#killReason;
    if (ended === undefined) await within(this.#environment.clock, deathNewsWithinMs, this.exited);
    const reason = ended ?? this.#exit?.reason ?? `the connection to it broke: ${describeError(cause)}`;
    return engineFailed(model, reason, cause);
  }
}

function isWorking(slot: unknown): boolean {
  return typeof slot === 'object' && slot !== null && 'is_processing' in slot && slot.is_processing === true;
}

/** The fault that a request gets when its engine could not serve it. */
export function engineFailed(model: StoredModel, reason: string, cause?: unknown): Fault {
  const [name] = model.names;
  return new Fault('ENGINE_FAILED', `the engine of ${name} failed: ${reason}`, {cause, details: {model: name, reason}});
}

/** What is answered for an engine that cannot serve anybody now. */
export function engineRefused(model: StoredModel, reason: string): Refusal {
  return {kind: 'refused', code: 'broken', message: engineFailed(model, reason).message};
}

/** Chosen here and passed on, because llama-server tells a port that it chose itself only after loading the model. */
async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Fault('INTERNAL', 'the system chose no port');
  return address.port;
}
