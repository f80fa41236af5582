import type {EngineState} from '@hearsay/core';

/** How a llama-server process ended. */
export interface EngineExit {
  /** One line for people: what happened and llama-server's own reason. Names no folder of this machine (R78). */
  readonly reason: string;
  /** The last lines that it wrote. */
  readonly lines: readonly string[];
  /** Starting it again in the same way cannot help: damaged file, unknown architecture, bad flag. */
  readonly final: boolean;
  /** Another process took the port in between; a start on another port costs no attempt (R85). */
  readonly portTaken: boolean;
}

export interface ExitFacts {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly lines: readonly string[];
  /** Paths that must not appear in the reason; only their last parts do. */
  readonly files: readonly string[];
  /** The system has ended some process for want of memory since this one started; undefined: it does not tell. */
  readonly outOfMemory?: boolean | undefined;
}

/** Lines that tell why, the most telling first; llama-server says the cause early and then repeats its consequences. */
const telling: readonly RegExp[] = [
  /couldn't bind HTTP server socket.*/u,
  /\bgguf_init_\w+: (?<why>.*)/u,
  /error loading model: .*/u,
  /\bclip_init: (?<why>.*)/u,
  /error: invalid argument: .*/u,
  /error while handling argument .*/u,
  /failed to allocate buffer .*/u,
  /GGML_ASSERT\(.*/u,
  /(?:ggml|CUDA|Vulkan|Metal)\S* error: .*/u,
  /\bE (?<why>.*)/u,
  /\berror: .*/iu,
];

const final: RegExp =
  /\bgguf_init_\w+: |error loading model: |clip_init: failed to load model |error: invalid argument: |error while handling argument |illegal split file/u;

/** A model that does not fit now may fit later. */
const memory: RegExp = /alloc|out of memory|not enough memory/iu;

const signalTexts: Readonly<Partial<Record<NodeJS.Signals, string>>> = {
  SIGKILL: 'was killed (SIGKILL), most often by the system for want of memory',
  SIGSEGV: 'crashed (SIGSEGV)',
  SIGBUS: 'crashed (SIGBUS); the model file may have been cut while in use',
  SIGILL: 'crashed (SIGILL): it was built for another processor',
  SIGABRT: 'aborted (SIGABRT)',
  SIGTERM: 'was stopped from outside (SIGTERM)',
};

/** Pure: what an exit means, from its status and the last lines on stderr. */
export function judgeExit({code, signal, lines, files, outOfMemory}: ExitFacts): EngineExit {
  const how = signal === null ? `exited with code ${code}` : signalText(signal, outOfMemory);
  // Stopped by a signal from outside, it had nothing to say about itself.
  const why = signal === 'SIGKILL' || signal === 'SIGTERM' || code === 0 ? undefined : tellingPart(lines);
  const finals = signal === null ? lines.filter(line => final.test(line)) : [];
  return {
    reason: withoutFolders(`llama-server ${how}${why === undefined ? '' : `: ${why}`}`, files),
    lines: lines.map(line => withoutFolders(line, files)),
    final: finals.length > 0 && !finals.some(line => memory.test(line)),
    portTaken: signal === null && lines.some(line => line.includes("couldn't bind HTTP server socket")),
  };
}

function signalText(signal: NodeJS.Signals, outOfMemory: boolean | undefined): string {
  if (signal === 'SIGKILL' && outOfMemory === true) return 'was killed (SIGKILL) by the system for want of memory';
  if (signal === 'SIGKILL' && outOfMemory === false) return 'was killed (SIGKILL) by somebody, not for want of memory';
  return signalTexts[signal] ?? `was killed (${signal})`;
}

function tellingPart(lines: readonly string[]): string | undefined {
  for (const pattern of telling) {
    for (const line of lines) {
      const match = pattern.exec(line);
      if (match !== null) return (match.groups?.['why'] ?? match[0]).trim();
    }
  }
  return undefined;
}

/** Pure: a line in which these paths are cut to file names. */
export function withoutFolders(text: string, files: readonly string[]): string {
  return files.reduce((rest, file) => rest.replaceAll(file, file.replace(/^.*[/\\]/u, '')), text);
}

/**
 * Pure: why an engine does not run and until when, with the last lines that llama-server wrote; undefined when nothing
 * is wrong.
 */
export function failureOf(state: EngineState, lastExit: EngineExit | undefined, leftMs: number): string | undefined {
  switch (state.kind) {
    case 'broken':
      return [judgeBroken(state, leftMs), ...(lastExit?.lines ?? [])].join('\n');
    case 'backing off':
      return [state.reason, ...(lastExit?.lines ?? [])].join('\n');
    case 'stopped':
    case 'starting':
    case 'ready':
    case 'draining':
    case 'stopping':
      return undefined;
  }
}

/** Pure: why a broken engine takes nothing, and when it does again. */
export function judgeBroken({reason}: {readonly reason: string}, coolDownMs: number): string {
  const seconds = Math.max(1, Math.ceil(coolDownMs / 1000));
  return `${reason}; it can be tried again in ${seconds} s, or at once with: hearsay load`;
}
