import {open} from 'node:fs/promises';
import type {Stats} from 'node:fs';
import {Fault} from '@hearsay/core';
import type {Clock} from '@hearsay/core';

/**
 * Leads to the files of one place. Every call to the file system occupies one of few threads until it is answered, and
 * a network disk that has gone may never answer: so each place has a door of its own that few calls pass at a time,
 * and that stays shut while one of them hangs.
 */
export interface FileDoor {
  /**
   * Resolves with what the call gives. Throws BAD_FILE with the reason `hung` when it takes too long, or at once while
   * an earlier one still hangs; what arrives too late is handed to `discard`.
   */
  pass<T>(call: () => Promise<T>, discard?: (late: T) => void): Promise<T>;
}

/** A file that was opened through a door: all that is done with it passes the door too. */
export interface OpenFile extends AsyncDisposable {
  stat(): Promise<Stats>;
  read(buffer: Buffer, offset: number, length: number, position: number): Promise<{readonly bytesRead: number}>;
}

/** Longer than a busy disk takes. One that sleeps and needs longer to wake up is looked at again when it answers. */
const answerMsMax = 3000;

/** Half of the threads that Node has for files, so that one dead disk leaves some for all others. */
const callsAtOnce = 2;

interface Visit {
  readonly enteredMs: number;
  readonly giveUp: (error: unknown) => void;
  isLate: boolean;
}

export function fileDoor(clock: Clock, signal: AbortSignal): FileDoor {
  const waiting: (() => void)[] = [];
  const inside = new Set<Visit>();
  let free = callsAtOnce;
  let hung = 0;
  let timer: Disposable | undefined;
  signal.addEventListener('abort', () => {
    timer?.[Symbol.dispose]();
    for (const visit of inside) visit.giveUp(signal.reason);
    letIn();
  });

  /** While the door is shut everybody is let in, only to be told so. */
  function letIn(): void {
    const count = hung > 0 || signal.aborted ? waiting.length : Math.min(waiting.length, Math.max(0, free));
    free -= count;
    for (const resolve of waiting.splice(0, count)) resolve();
  }

  function leave(): void {
    free += 1;
    letIn();
  }

  async function enter(): Promise<void> {
    if (free > 0 || hung > 0) free -= 1;
    else await new Promise<void>(resolve => waiting.push(resolve));
    if (hung === 0 && !signal.aborted) return;
    leave();
    throw signal.aborted ? signal.reason : doesNotAnswer();
  }

  /** One timer for all that go in and out: a timer for each would cost more than the call it guards. */
  function watchTime(): void {
    const [oldest] = inside;
    if (timer !== undefined || oldest === undefined || signal.aborted) return;
    timer = clock.after(oldest.enteredMs + answerMsMax - clock.monotonicMs(), () => {
      timer = undefined;
      const nowMs = clock.monotonicMs();
      for (const visit of inside) if (nowMs - visit.enteredMs >= answerMsMax) expire(visit);
      watchTime();
    });
  }

  function expire(visit: Visit): void {
    inside.delete(visit);
    visit.isLate = true;
    hung += 1;
    visit.giveUp(doesNotAnswer());
    letIn();
  }

  return {
    async pass(call, discard) {
      signal.throwIfAborted();
      await enter();
      const early = Promise.withResolvers<never>();
      const visit: Visit = {enteredMs: clock.monotonicMs(), giveUp: early.reject, isLate: false};
      inside.add(visit);
      watchTime();
      const calling = call().finally(() => {
        if (visit.isLate) hung -= 1;
        leave();
      });
      try {
        return await Promise.race([calling, early.promise]);
      } catch (error) {
        if (visit.isLate || signal.aborted) void calling.then(discard, () => {});
        throw error;
      } finally {
        inside.delete(visit);
      }
    },
  };
}

/** For callers that have no dead disk to fear: one file, named by a person. */
export const openDoor: FileDoor = {pass: call => call()};

export async function openThrough(door: FileDoor, path: string, flags?: number): Promise<OpenFile> {
  const file = await door.pass(
    () => open(path, flags),
    late => void late.close().catch(() => {}),
  );
  return {
    stat: () => door.pass(() => file.stat()),
    read: (buffer, offset, length, position) => door.pass(() => file.read(buffer, offset, length, position)),
    async [Symbol.asyncDispose]() {
      // Whatever has been read is good; a close that hangs or fails takes nothing from it.
      await door.pass(() => file.close()).catch(() => void file.close().catch(() => {}));
    },
  };
}

function doesNotAnswer(): Fault {
  const message = `its disk does not answer (for more than ${answerMsMax / 1000} s); is a network drive away?`;
  return new Fault('BAD_FILE', message, {details: {reason: 'hung'}});
}
