import test from 'ava';

/** Where whatever is started says how it ends, as ava's `t` does. */
export interface Ends {
  teardown(end: () => unknown): void;
}

/** A start of some nodes may share two cores with all that other tests start. */
const startMsMax = 120_000;

/**
 * What all tests of a file may use together, because none of them changes what another one looks at: it starts before
 * the first of them and ends after the last. Daemons are dear, a second of processor time each.
 */
export function shared<T>(what: string, start: (ends: Ends) => Promise<T>, msMax: number = startMsMax): () => T {
  const ends = new AsyncDisposableStack();
  const started: T[] = [];
  test.serial.before(`${what}: start`, async t => {
    t.timeout(msMax);
    const value = await start({
      teardown: end => {
        // A start that has outlived its time is over for ava, but not for what it still starts.
        if (ends.disposed) return void end();
        ends.defer(async () => {
          await end();
        });
      },
    });
    started.push(value);
  });
  test.serial.after.always(`${what}: end`, async () => ends.disposeAsync());
  return () => {
    const [value] = started;
    if (value === undefined) throw new Error(`${what} did not start`);
    return value;
  };
}
