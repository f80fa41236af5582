import {once} from 'node:events';
import {copyFile, mkdtemp, rm} from 'node:fs/promises';
import {createServer} from 'node:net';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {runCli, startDaemon} from '../support/daemon.ts';
import {modelFolder, tinyModel} from '../support/models.ts';
import {until} from '../support/until.ts';

interface Line {
  readonly subject: string;
  readonly grade: string;
  readonly finding: string;
  readonly remedy?: string;
}

function linesOf(stdout: string): readonly Line[] {
  const {checks}: {checks: readonly Line[]} = JSON.parse(stdout);
  return checks;
}

async function emptyPlace(t: ExecutionContext, more: NodeJS.ProcessEnv): Promise<NodeJS.ProcessEnv> {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-doctor-'));
  t.teardown(async () => rm(folder, {recursive: true, force: true}));
  const xdg = {XDG_CONFIG_HOME: join(folder, 'config'), XDG_DATA_HOME: join(folder, 'share')};
  return {...process.env, ...xdg, HEARSAY_STORES: '', ...more};
}

test.serial('without a daemon, doctor tells what to start, who has the port and which folder is missing', async t => {
  const taken = createServer().listen(0, '0.0.0.0');
  t.teardown(() => taken.close());
  await once(taken, 'listening');
  const address = taken.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const variables = await emptyPlace(t, {
    HEARSAY_MESH_PORT: String(port),
    HEARSAY_GATEWAY_PORT: '0',
    HEARSAY_HOST: '127.0.0.1:9',
    HEARSAY_MODELS: '/nowhere/models',
  });
  const {code, stdout, stderr} = await runCli(['doctor', '--json'], variables);
  t.is(code, 1, stderr);
  const lines = linesOf(stdout);
  const of = (subject: string): Line | undefined => lines.find(line => line.subject === subject);
  t.is(of('daemon')?.remedy, 'hearsay serve');
  t.is(of('mesh port')?.grade, 'warning');
  if (process.platform === 'linux') t.regex(of('mesh port')?.finding ?? '', RegExp(`process ${process.pid}`, 'u'));
  t.regex(of('folders')?.finding ?? '', /^\/nowhere\/models does not exist/u);
});

test.serial('with a daemon, doctor tells of a twin of its name, a model name with two files and its ports', async t => {
  const mesh = `doctor-${process.pid}`;
  const folders = await Promise.all([modelFolder(t, 'tiny-count-F16.gguf'), modelFolder(t)]);
  await copyFile(tinyModel('tiny-other-Q4_0.gguf'), join(folders[1], 'tiny-count-F16.gguf'));
  const [one] = await Promise.all(
    folders.map(async folder =>
      startDaemon(t, {name: 'twin', mesh, models: [folder], variables: {HEARSAY_GATEWAY_PORT: '0'}}),
    ),
  );
  if (one === undefined) return t.fail();
  const findings = await until(
    'doctor has heard of the other',
    async () => {
      const {code, stdout} = await one.cli('doctor');
      const hasHeard = stdout.includes('2 nodes are called twin') && stdout.includes('different files');
      return code !== 0 && hasHeard ? stdout : undefined;
    },
    20_000,
  );
  t.regex(findings, /^ok {7}daemon +twin answers at /mu);
  t.regex(findings, /^ok {7}peers +1 connected$/mu);
  t.regex(findings, /^warning {2}names +2 nodes are called twin\. To do: give each its own name/mu);
  t.regex(findings, /^warning {2}names +tiny-count-F16 is the name of different files/mu);
  t.regex(findings, /^ok {7}folders +\d+ can be used/mu);
});
