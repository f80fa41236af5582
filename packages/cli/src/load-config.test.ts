import {mkdir, mkdtemp, readFile, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {Fault} from '@hearsay/core';
import {configDocs} from './config-docs.ts';
import {loadConfig} from './load-config.ts';
import type {ConfigRequest} from './load-config.ts';

async function requestIn(t: ExecutionContext, toml?: string): Promise<ConfigRequest> {
  const home = await mkdtemp(join(tmpdir(), 'hearsay-config-'));
  t.teardown(async () => rm(home, {recursive: true}));
  await mkdir(join(home, '.config', 'hearsay'), {recursive: true});
  if (toml !== undefined) await writeFile(join(home, '.config', 'hearsay', 'config.toml'), toml);
  return {flags: {}, file: undefined, variables: {}, home, workingFolder: home};
}

test('the standard file is read when it is there', async t => {
  t.is((await loadConfig(await requestIn(t, 'name = "spark"'))).name, 'spark');
  t.not((await loadConfig(await requestIn(t))).name, 'spark');
});

test('XDG_CONFIG_HOME, HEARSAY_CONFIG and --config say which file is read', async t => {
  const request = await requestIn(t, 'name = "standard"');
  const {home} = request;
  await mkdir(join(home, 'xdg', 'hearsay'), {recursive: true});
  await writeFile(join(home, 'xdg', 'hearsay', 'config.toml'), 'name = "xdg"');
  await writeFile(join(home, 'variable.toml'), 'name = "variable"');
  await writeFile(join(home, 'flag.toml'), 'name = "flag"');
  const xdg = {...request, variables: {XDG_CONFIG_HOME: join(home, 'xdg')}};
  t.is((await loadConfig(xdg)).name, 'xdg');
  const variable = {...request, variables: {...xdg.variables, HEARSAY_CONFIG: 'variable.toml'}};
  t.is((await loadConfig(variable)).name, 'variable');
  t.is((await loadConfig({...variable, file: 'flag.toml'})).name, 'flag');
});

test('a named file that is missing is refused by name', async t => {
  const request = await requestIn(t);
  const fault = await t.throwsAsync(loadConfig({...request, file: 'gone.toml'}), {instanceOf: Fault});
  t.regex(fault?.message ?? '', /gone\.toml: there is no such file/u);
});

test('a file that is no TOML is refused with the place of the mistake', async t => {
  const fault = await t.throwsAsync(loadConfig(await requestIn(t, 'name = "a"\nname = ')), {instanceOf: Fault});
  t.is(fault?.code, 'BAD_CONFIG');
  t.regex(fault?.message ?? '', /config\.toml:2:\d+: /u);
});

test('docs/configuration.md is what the settings say; if not: node scripts/write-config-docs.ts', async t => {
  const written = await readFile(new URL('../../../docs/configuration.md', import.meta.url), 'utf8');
  t.is(written, configDocs());
});

test('the example in the manual is a config file that can be used', async t => {
  const [, example = ''] = /```toml\n(.*?)```/su.exec(configDocs()) ?? [];
  t.like(await loadConfig(await requestIn(t, example)), {name: 'spark', mesh: {peers: ['spark', '10.0.0.5:4328']}});
});
