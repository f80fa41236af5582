import test from 'ava';
import {guessHardware} from './guess-hardware.ts';

const processor = {model: 'AMD Ryzen 7 5800X 8-Core Processor', threads: 16, megahertz: 3800, architecture: 'x64'};

/** GB/s of memory and teraflops. */
function speedOf(...descriptions: readonly string[]): readonly [number, number] {
  const devices = descriptions.map(description => ({description}));
  const {memoryBytesPerSecond, operationsPerSecond} = guessHardware({devices, processor});
  return [memoryBytesPerSecond / 1e9, operationsPerSecond / 1e12];
}

test('machines stand in the order in which people would buy them for this', t => {
  const kinds = [
    speedOf('NVIDIA GeForce RTX 5090'),
    speedOf('NVIDIA GeForce RTX 4090'),
    speedOf('NVIDIA GeForce RTX 4070 Ti SUPER'),
    speedOf('NVIDIA GeForce RTX 3060'),
    speedOf('Intel(R) UHD Graphics 770 (ADL-S GT1)'),
    speedOf(),
  ];
  for (const [index, [gigabytes, teraflops]] of kinds.slice(1).entries()) {
    const [before = 0, teraflopsBefore = 0] = kinds[index] ?? [];
    t.true(
      gigabytes < before && teraflops < teraflopsBefore,
      `${index + 1}: ${gigabytes} GB/s, ${teraflops} teraflops`,
    );
  }
});

test('the variants of a chip are told apart by their whole name', t => {
  const [ultra, max, pro, plain] = ['Apple M2 Ultra', 'Apple M3 Max', 'Apple M4 Pro', 'Apple M1'].map(name =>
    speedOf(name),
  );
  t.deepEqual([ultra?.[0], max?.[0], pro?.[0], plain?.[0]], [800, 400, 220, 100]);
  t.deepEqual(speedOf('NVIDIA GB10'), [270, 50]);
});

test('a trademark sign in a name, as on Windows, makes no other machine of it', t => {
  t.deepEqual(speedOf('AMD Radeon(TM) Graphics'), speedOf('AMD Radeon Graphics (RADV RENOIR)'));
  t.deepEqual(speedOf('AMD Radeon(TM) 780M'), speedOf('AMD Radeon 780M Graphics (RADV PHOENIX)'));
  t.deepEqual(speedOf('AMD Radeon(TM) 8060S Graphics'), speedOf('AMD Radeon 8060S (RADV GFX1151)'));
});

test('of several devices the slowest counts, and one that nobody knows is something in between', t => {
  t.deepEqual(speedOf('NVIDIA GeForce RTX 4090', 'NVIDIA GeForce RTX 3060'), speedOf('NVIDIA GeForce RTX 3060'));
  const [gigabytes] = speedOf('Quantum Fantasy 9000');
  t.true(gigabytes > speedOf()[0] && gigabytes < speedOf('NVIDIA GeForce RTX 4090')[0]);
});

test('without a device the processor is judged by its cores and its clock, also where the system does not tell it', t => {
  const operations = (changes: Partial<typeof processor>): number =>
    guessHardware({devices: [], processor: {...processor, ...changes}}).operationsPerSecond;
  t.true(operations({threads: 32}) > operations({}));
  t.true(operations({threads: 2}) < operations({}));
  t.true(operations({megahertz: 0}) > 0);
  t.true(operations({architecture: 'arm64'}) > operations({}));
});
