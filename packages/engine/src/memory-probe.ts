import type {Environment, MemoryFacts} from '@hearsay/core';
import type {Device} from './list-devices.ts';

export interface ProbeSources {
  /** System memory at this moment. */
  readonly ram: () => MemoryFacts;
  /** Takes as long as the drivers need. */
  readonly devices: () => Promise<readonly Device[]>;
}

/** Devices with less than this together are no place for models: what a laptop sets aside for its screen (R100). */
const deviceBytesLeast = 3 * 1024 ** 3;

/** While nothing is loaded here, foreign programs may come and go on the devices: look again after this time. */
const lookAgainMs = 60_000;

/** The two clocks of a machine drift by less than this, except when it slept or somebody set the time. */
const clockJumpMs = 5_000;

/** Measures the memory that models can use: that of devices where they count, else that of the system (S30). */
export class MemoryProbe {
  readonly #sources: ProbeSources;
  readonly #clock: Environment['clock'];
  #devices: readonly Device[] = [];
  #lookedAtMs = -Infinity;
  #clockGapMs: number;
  /** Sleeps of the machine so far, and how many of them the last look came after. */
  #sleeps = 0;
  #sleepsSeen = -1;
  #looking: Promise<void> | undefined;

  constructor(sources: ProbeSources, {clock}: Pick<Environment, 'clock'>) {
    this.#sources = sources;
    this.#clock = clock;
    this.#clockGapMs = clock.wallMs() - clock.monotonicMs();
  }

  /** System memory as it is now; devices as they were at the last look, which is made anew when it is old. */
  facts(): MemoryFacts {
    this.#watchClocks();
    if (this.#devices.length > 0 && this.#clock.monotonicMs() - this.#lookedAtMs > lookAgainMs) void this.look();
    const ram = this.#sources.ram();
    const places = this.#placesBeside(ram.totalBytes);
    if (places.length === 0) return ram;
    const [totalBytes, freeBytes] = [
      sum(places.map(place => place.totalBytes)),
      sum(places.map(place => place.freeBytes)),
    ];
    return {kind: 'device', totalBytes, freeBytes};
  }

  /** The devices of the last look, where they are a place for models; else none. */
  places(): readonly Device[] {
    return this.#devices.length === 0 ? [] : this.#placesBeside(this.#sources.ram().totalBytes);
  }

  #placesBeside(ramBytes: number): readonly Device[] {
    const total = sum(this.#devices.map(({totalBytes}) => totalBytes));
    return total === 0 || total < Math.min(deviceBytesLeast, ramBytes) ? [] : this.#devices;
  }

  /** False before the first look and after a sleep of the machine: then nothing may be promised before `look`. */
  isCurrent(): boolean {
    this.#watchClocks();
    return this.#sleepsSeen === this.#sleeps;
  }

  /** Looks at the devices; calls at the same time share one look. Never rejects if the sources do not. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => (this.#looking = undefined));
    return this.#looking;
  }

  async #look(): Promise<void> {
    this.#watchClocks();
    const sleeps = this.#sleeps;
    this.#devices = await this.#sources.devices();
    this.#sleepsSeen = sleeps; // one that came meanwhile makes it stale
    this.#lookedAtMs = this.#clock.monotonicMs();
  }

  #watchClocks(): void {
    const gapMs = this.#clock.wallMs() - this.#clock.monotonicMs();
    if (Math.abs(gapMs - this.#clockGapMs) > clockJumpMs) this.#sleeps += 1;
    this.#clockGapMs = gapMs;
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
