import {once} from 'node:events';
import {mkdtemp, rm, stat} from 'node:fs/promises';
import {createServer} from 'node:http';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import test from 'ava';
import {systemClock} from '@hearsay/cli';
import {runCli, startDaemon} from '../support/daemon.ts';
import {shared} from '../support/shared.ts';

/** For those who only ask; who ends or kills one starts it. */
const spark = shared('a daemon', async ends => startDaemon(ends, {name: 'spark', demo: true}));

test('a daemon answers its own command line, and --json is what the admin API says', async t => {
  const daemon = spark();
  const status = await daemon.cli('status');
  t.is(status.code, 0, status.stderr);
  t.regex(status.stdout, /^name: +spark$/mu);
  t.regex((await daemon.cli('nodes')).stdout, /^NAME .*\nspark .* alive +self /u);
  t.regex((await daemon.cli('models')).stdout, /^hearsay-demo .* local$/mu);
  t.is((await daemon.cli('ps')).stdout, 'NAME    ID    SIZE    PROCESSOR    CONTEXT    STARTED    UNTIL\n');
  const printed: unknown = JSON.parse((await daemon.cli('ls', '--json')).stdout);
  t.deepEqual(printed, await (await fetch(`${daemon.url}/hearsay/v1/models`)).json());
});

test('without --host the commands find the daemon of the data folder', async t => {
  const daemon = spark();
  const variables = {...process.env, HEARSAY_HOST: '', HEARSAY_DATA_DIR: daemon.dataFolder};
  t.regex((await runCli(['status'], variables)).stdout, /^name: +spark$/mu);
});

test('a second start on one data folder names the first and ends with 1', async t => {
  const daemon = spark();
  const second = await daemon.cli('serve', '--no-install', '--data-dir', daemon.dataFolder);
  t.is(second.code, 1);
  t.true(second.stderr.includes(`already running (pid ${daemon.pid}, ${daemon.url})`), second.stderr);
});

// Not beside the others of this file, each of which starts programs: it is timed.
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test.serial(`${signal} ends a daemon cleanly, within 5 seconds and with 0`, async t => {
    const daemon = await startDaemon(t);
    const startedMs = systemClock.monotonicMs();
    daemon.kill(signal);
    daemon.kill(signal); // what a launcher passes on beside the terminal's own
    t.is(await daemon.exited, 0);
    t.true(systemClock.monotonicMs() - startedMs < 5000);
    await t.throwsAsync(stat(join(daemon.dataFolder, 'daemon.json')), {code: 'ENOENT'});
  });
}

test('after a kill the next start on the same folder works and is the same node', async t => {
  const first = await startDaemon(t);
  const {stdout} = await first.cli('status');
  first.kill('SIGKILL');
  t.is(await first.exited, 137);
  const second = await startDaemon(t, {dataFolder: first.dataFolder});
  const id = /^id: .*$/mu;
  t.is(id.exec((await second.cli('status')).stdout)?.[0], id.exec(stdout)?.[0]);
});

test('a port that was asked for and is taken is refused, not replaced', async t => {
  const daemon = spark();
  const taken = new URL(daemon.url).host;
  const {message} = await t.throwsAsync(startDaemon(t, {gateway: taken}));
  t.regex(message, /cannot listen on 127\.0\.0\.1, port \d+/u);
});

const usageErrors: readonly (readonly [readonly string[], RegExp])[] = [
  [[], /Usage: hearsay/u],
  [['serve', '--bogus'], /unknown option '--bogus'/u],
  [['sevre'], /unknown command 'sevre'/u],
  [['stop'], /missing required argument 'model'/u],
  [['serve', '--gateway', 'http://x'], /--gateway must be HOST:PORT/u],
  [['serve', '--mesh-port', 'x'], /mesh\.port on the command line must be a whole number/u],
  [['serve', '--config', '/nowhere.toml'], /\/nowhere\.toml: there is no such file/u],
  [['serve', '--models', '/nowhere', '--no-install'], /\/nowhere/u],
  [['ps', '--host', 'a b'], /cannot use "a b" as a daemon's address/u],
];
for (const [args, message] of usageErrors) {
  test(`hearsay ${args.join(' ')} is a mistake in the usage: 2, with the reason on stderr`, async t => {
    const folder = await mkdtemp(join(tmpdir(), 'hearsay-usage-'));
    t.teardown(async () => rm(folder, {recursive: true}));
    const variables = {...process.env, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder};
    const {code, stdout, stderr} = await runCli(args, variables);
    t.is(code, 2, stderr);
    t.is(stdout, '');
    t.regex(stderr, message);
  });
}

test('the gateway speaks TLS with the files that are set, and the commands say what a strange certificate needs', async t => {
  const file = (name: string): string => join(import.meta.dirname, '..', 'fixtures', `localhost-${name}.pem`);
  const daemon = await startDaemon(t, {
    variables: {HEARSAY_TLS_CERT: file('cert'), HEARSAY_TLS_KEY: file('key')},
  });
  t.regex(daemon.url, /^https:/u);
  const wary = await daemon.cli('status');
  t.is(wary.code, 4);
  t.regex(wary.stderr, /a certificate that is not trusted here .*NODE_EXTRA_CA_CERTS/u);
  const trusting = {...process.env, HEARSAY_HOST: daemon.url, NODE_EXTRA_CA_CERTS: file('cert')};
  const told = await runCli(['status'], trusting);
  t.regex(told.stdout, /^gateway: +https:/mu, told.stderr);
});

test('R72: stop at a foreign server says that it is not hearsay, with 4', async t => {
  const server = createServer(
    (_, response) => void response.writeHead(404, {'content-type': 'text/html'}).end('<h1>no</h1>'),
  );
  t.teardown(() => server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  const {code, stderr} = await runCli(['stop', 'm', '--host', url]);
  t.is(code, 4);
  t.regex(stderr, /not hearsay \(HTTP 404/u);
});

test('S57: stopping a model that nobody has ends with 3 and names it', async t => {
  const daemon = spark();
  const {code, stdout, stderr} = await daemon.cli('stop', 'no-such-model');
  t.is(code, 3);
  t.is(stdout, '');
  t.regex(stderr, /no-such-model/u);
});

test('a number that makes no sense is a usage error in words, without a stack trace', async t => {
  const wrong = [
    ['load', 'tiny', '--slots=0'],
    ['load', 'tiny', '--context=1k'],
    ['load', 'tiny', '--slots=-2'],
    ['requests', '-n', 'x'],
  ];
  for (const args of wrong) {
    const {code, stderr} = await runCli(args);
    t.is(code, 2, args.join(' '));
    t.regex(stderr, /Write a whole number above 0\.\n/u);
    t.notRegex(stderr, / at /u);
  }
});
