import test from 'ava';
import {realEnvironment} from '../../../test/support/environment.ts';
import {testEngine} from '../../../test/support/engine-trial.ts';
import {listDevices, parseDevices} from './list-devices.ts';

const gibibyte = 1024 ** 3;

/** As llama-server prints them, by kind of machine. */
const outputs: readonly (readonly [string, string, string])[] = [
  [
    'two CUDA devices',
    `Available devices:
  CUDA0: NVIDIA GeForce RTX 4090 (24576 MiB, 23552 MiB free)
  CUDA1: NVIDIA GeForce RTX 3060 (12288 MiB, 12000 MiB free)`,
    'CUDA0 24/23, CUDA1 12/11.7',
  ],
  ['ROCm', 'Available devices:\n  ROCm0: AMD Radeon RX 7900 XTX (24560 MiB, 24508 MiB free)\n', 'ROCm0 24/23.9'],
  [
    'Vulkan, with parentheses in the description',
    'Available devices:\n  Vulkan0: AMD Radeon Graphics (RADV GFX1151) (98304 MiB, 97280 MiB free)\n',
    'Vulkan0 96/95',
  ],
  [
    'Metal, and BLAS without memory',
    'Available devices:\n  MTL0: Apple M3 Max (98304 MiB, 98303 MiB free)\n  BLAS: Accelerate (0 MiB, 0 MiB free)\n',
    'MTL0 96/96',
  ],
  ['unified memory', 'Available devices:\n  CUDA0: NVIDIA GB10 (122880 MiB, 102400 MiB free)\n', 'CUDA0 120/100'],
  ['Windows line ends', 'Available devices:\r\n  CUDA0: NVIDIA RTX A2000 (6144 MiB, 5120 MiB free)\r\n', 'CUDA0 6/5'],
  ['none', 'Available devices:\n  (none)\n', ''],
  ['nothing at all', '', ''],
];

test('the description of a device is kept whole, with parentheses of its own', t => {
  const [device] = parseDevices('  Vulkan0: AMD Radeon Graphics (RADV GFX1151) (98304 MiB, 97280 MiB free)\n');
  t.is(device?.description, 'AMD Radeon Graphics (RADV GFX1151)');
});

for (const [kind, output, expected] of outputs) {
  test(`R100: devices of a recorded output: ${kind}`, t => {
    const round = (bytes: number): number => Math.round((bytes / gibibyte) * 10) / 10;
    const found = parseDevices(output).map(
      ({name, totalBytes, freeBytes}) => `${name} ${round(totalBytes)}/${round(freeBytes)}`,
    );
    t.is(found.join(', '), expected);
  });
}

for (const total of ['0', 'NaN', '-1', 'nan', 'inf', '1e400', '99999999999999999999', '', '[Not Supported]']) {
  test(`R96: a device of ${total === '' ? 'no' : total} MiB is none`, t => {
    t.deepEqual(parseDevices(`  CUDA0: Thing (${total} MiB, 5 MiB free)`), []);
  });
}

test('R96: a device whose free memory is nonsense has none free, and never more than all', t => {
  const free = (text: string) => parseDevices(`  CUDA0: Thing (1024 MiB, ${text} MiB free)`)[0]?.freeBytes;
  t.is(free('NaN'), 0);
  t.is(free('-5'), 0);
  t.is(free('4096'), gibibyte);
});

test('a list without end is cut', t => {
  t.is(parseDevices('  X: y (1 MiB, 1 MiB free)\n'.repeat(10_000)).length, 64);
});

test('the real llama-server on a machine without devices lists none, and a program that is none lists none', async t => {
  const engine = {command: testEngine(), leadingArguments: []};
  t.deepEqual(await listDevices(engine, realEnvironment()), []);
  t.deepEqual(await listDevices({...engine, command: '/nonexistent'}, realEnvironment()), []);
});
