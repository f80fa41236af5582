import type {HardwareFacts} from './record.ts';

/** What a machine says of itself without being measured. */
export interface MachineFacts {
  /** Devices that models are loaded on, as llama-server describes them; none: the processor runs them. */
  readonly devices: readonly {readonly description: string}[];
  readonly processor: ProcessorFacts;
}

export interface ProcessorFacts {
  /** As the system names it: `Apple M3 Max`, `AMD Ryzen 7 5800X`. */
  readonly model: string;
  /** Threads that run at the same time. */
  readonly threads: number;
  /** 0 where the system does not tell. */
  readonly megahertz: number;
  readonly architecture: string;
}

/** Gigabytes a second of its memory, and teraflops while a prompt is read: a third of what its maker says. */
type Speed = readonly [gigabytes: number, teraflops: number];

/** The first whose words occur counts, so that the longer name stands before the shorter. Round public figures. */
const deviceClasses: readonly (readonly [RegExp, Speed])[] = [
  [/\bB200\b|\bH200\b|\bH100\b|\bGH200\b|MI3\d\dX/iu, [3300, 300]],
  [/\bA100\b/iu, [1600, 120]],
  [/RTX 5090/iu, [1790, 110]],
  [/RTX (?:PRO 6000|6000 Ada)|\bL40S?\b/iu, [900, 90]],
  [/RTX 4090/iu, [1000, 80]],
  [/RTX (?:3090|5080|A6000)|\bA6000\b/iu, [940, 45]],
  [/RTX (?:4080|5070 Ti|3080)/iu, [750, 45]],
  [/RTX (?:4070|5070|3070)|\bA10\b/iu, [500, 30]],
  [/RTX (?:[2345]0[56]0|A[24]\d00|T4|20[78]0)|\bT4\b|\bL4\b/iu, [300, 18]],
  [/\bGB10\b/u, [270, 50]],
  [/Orin|Thor/iu, [200, 12]],
  [/\bP40\b|\bGTX\b/iu, [300, 8]],
  [/RX 7900|RX 9070/iu, [850, 45]],
  [/RX [679]\d00|\bW[67]\d00\b/iu, [450, 20]],
  [/Radeon 80[56]0S|GFX115[01]/iu, [220, 15]],
  [/Arc.*[AB]\d{3}/iu, [450, 15]],
  [/Apple M\d+ Ultra/u, [800, 24]],
  [/Apple M\d+ Max/u, [400, 12]],
  [/Apple M\d+ Pro/u, [220, 7]],
  [/Apple M\d+/u, [100, 3.5]],
  [/Radeon Graphics|Radeon \d{3}M|Iris|UHD|Intel.*Graphics/iu, [60, 1.5]],
];

/** A card that nobody has put into a class: between what is built in and what is bought for this. */
const otherDevice: Speed = [300, 10];

/** Two channels of memory, as nearly all machines with this many threads have; servers have more of both. */
const desktopThreads = 32;
const desktopGigabytes = 40;
const gigabytesPerThread = 1.5;

/** Of each core: eight numbers at a time, twice in a cycle, and half of the time waiting. */
const operationsPerCycle = 16;
const megahertzAtFirst = 2500;

/** A SATA drive; Apple solders in something faster. Loads are measured at the first. */
const diskGigabytes = 0.5;
const appleDiskGigabytes = 3;

/**
 * Pure: how fast a machine of that kind usually is. Good enough to send a request to the desktop with a card and not
 * to the office PC, before either has run anything; the first request on each replaces it by what was measured. Layers
 * are spread over all devices of a machine and run one after the other, so that the slowest counts.
 */
export function guessHardware({devices, processor}: MachineFacts): HardwareFacts {
  const speeds = devices.map(({description}) => speedOf(description));
  const [first = processorSpeed(processor), ...others] = speeds;
  const [gigabytes, teraflops] = others.reduce(([a, b], [c, d]): Speed => [Math.min(a, c), Math.min(b, d)], first);
  const isApple = [processor.model, ...devices.map(({description}) => description)].some(text =>
    text.includes('Apple'),
  );
  return {
    memoryBytesPerSecond: gigabytes * 1e9,
    operationsPerSecond: teraflops * 1e12,
    diskBytesPerSecond: (isApple ? appleDiskGigabytes : diskGigabytes) * 1e9,
  };
}

function speedOf(description: string): Speed {
  const name = description.replaceAll(/\((?:R|TM)\)/giu, ''); // Windows has them where Linux has none
  return deviceClasses.find(([words]) => words.test(name))?.[1] ?? otherDevice;
}

function processorSpeed({architecture, megahertz, model, threads}: ProcessorFacts): Speed {
  const apple = deviceClasses.find(([words]) => model.startsWith('Apple') && words.test(model))?.[1];
  const cores = architecture === 'x64' ? Math.max(1, threads / 2) : Math.max(1, threads);
  const cycles = 1e6 * (megahertz > 0 ? megahertz : megahertzAtFirst);
  const teraflops = (cores * cycles * operationsPerCycle) / 1e12;
  const gigabytes = Math.max(desktopGigabytes, gigabytesPerThread * Math.max(0, threads - desktopThreads));
  return [apple?.[0] ?? gigabytes, teraflops];
}
