import {symlink, writeFile} from 'node:fs/promises';
import {join} from 'node:path';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {realEnvironment} from '../../../test/support/environment.ts';
import {hostConfig, temporaryFolder, testEngine} from '../../../test/support/engine-trial.ts';
import {lacksDevices} from './lacks-devices.ts';
import {listDevices} from './list-devices.ts';
import {startEngineHost} from './start-engine-host.ts';

const onLinux = process.platform === 'linux' ? test : test.skip;
if (onLinux === test.skip) console.log('skipped: builds without devices, which are told on Linux only');

/** What lies in front of the code of a program that takes its libraries from beside itself. */
const linkedBeside = '\x7fELF\0$ORIGIN\0libggml.v0.5.0.so\0';

/** Such a program with these files beside it. */
async function program(t: ExecutionContext, ...files: readonly string[]): Promise<string> {
  const folder = await temporaryFolder(t);
  for (const file of files) await writeFile(join(folder, file), '');
  const command = join(folder, 'llama-server');
  await writeFile(command, linkedBeside, {mode: 0o755});
  return command;
}

const processorOnly = ['libggml-base.so', 'libggml-cpu-x64.so', 'libggml-cpu-haswell.so', 'libggml.v0.5.0.so'];

for (const {title, files, expected} of [
  {title: 'plug-ins for processors alone', files: processorOnly, expected: true},
  {title: 'the wire to other machines too', files: [...processorOnly, 'libggml-rpc.so'], expected: true},
  {title: 'a plug-in for Vulkan', files: [...processorOnly, 'libggml-vulkan.so'], expected: false},
  {title: 'a plug-in for CUDA with a version', files: [...processorOnly, 'libggml-cuda.so.0.9.4'], expected: false},
  {title: 'plug-ins for ARM', files: [...processorOnly, 'libggml-cpu-armv8.2_1.so'], expected: true},
  {title: 'a plug-in with dots in its name', files: [...processorOnly, 'libggml-cuda-v12.8.so'], expected: false},
  {title: 'a plug-in in capitals', files: [...processorOnly, 'libggml-CUDA.so'], expected: false},
  {title: 'a plug-in that nobody has heard of', files: [...processorOnly, 'libggml-quantum9.so'], expected: false},
  {title: 'plug-ins that are libraries', files: ['libggml-base.so', 'libggml-cpu.so'], expected: false},
  {title: 'nothing beside it', files: [], expected: false},
]) {
  onLinux(
    `an engine with ${title} ${expected ? 'cannot have a device' : 'is to be asked for its devices'}`,
    async t => {
      t.is(await lacksDevices(await program(t, ...files), {}), expected);
    },
  );
}

onLinux('an engine is judged by where it is, not by a link to it', async t => {
  const real = await program(t, ...processorOnly, 'libggml-vulkan.so');
  const link = join(await temporaryFolder(t), 'llama-server');
  await symlink(real, link);
  t.false(await lacksDevices(link, {}));
});

onLinux('an engine is asked where a variable may name a backend, and where it is a script or is not there', async t => {
  const command = await program(t, ...processorOnly);
  t.false(await lacksDevices(command, {GGML_BACKEND_PATH: '/opt/libggml-cuda.so'}));
  t.true(await lacksDevices(command, {GGML_BACKEND_PATH: ''}));
  t.false(await lacksDevices(command, {LD_LIBRARY_PATH: '/opt/llama-cuda/lib'}));
  t.false(await lacksDevices(command, {LD_PRELOAD: 'libcuda.so'}));
  t.false(await lacksDevices(`${command}-none`, {}));
  await writeFile(command, '#!/bin/sh\nexec /opt/llama.cpp/llama-server "$@"\n');
  t.false(await lacksDevices(command, {}));
});

for (const {title, bytes} of [
  {title: 'was linked statically', bytes: '\x7fELF\0libc.so.6\0'},
  {title: 'looks for its libraries where it was built', bytes: '\x7fELF\0/build/bin:$ORIGIN\0libggml.v0.5.0.so\0'},
  {title: 'was linked with another version', bytes: '\x7fELF\0$ORIGIN\0libggml.so.0\0'},
  {title: 'is a script that brings a program along', bytes: `exec "$0.bin"\n${linkedBeside}`},
]) {
  onLinux(`an engine that ${title} is asked for its devices, whatever lies beside it`, async t => {
    const command = await program(t, ...processorOnly);
    t.true(await lacksDevices(command, {}));
    await writeFile(command, bytes);
    t.false(await lacksDevices(command, {}));
  });
}

onLinux('where the real llama-server is not asked for its devices, it has none', async t => {
  const command = testEngine();
  const devices = await listDevices({command, leadingArguments: []}, realEnvironment());
  t.true(devices.length === 0 || !(await lacksDevices(command, {})));
});

onLinux('a start runs no llama-server that cannot have a device, and any other', async t => {
  const warnings: string[] = [];
  const deps = {...realEnvironment(), log: (_level: string, message: string) => void warnings.push(message)};
  for (const plugIn of ['rpc', 'vulkan']) {
    const command = await program(t, ...processorOnly, `libggml-${plugIn}.so`); // run, it fails
    const engine = {command, leadingArguments: [], description: 'test engine'};
    const runFolder = join(await temporaryFolder(t), 'run');
    await using _host = await startEngineHost(hostConfig(runFolder, {engine, environment: {}}), deps);
    t.is(warnings.filter(text => text.includes('does not list its devices')).length, plugIn === 'vulkan' ? 1 : 0);
  }
});
