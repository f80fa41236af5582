import test from 'ava';
import {runCli, startDaemon} from '../support/daemon.ts';

test.serial('C33: with keys, the commands and clients that have one are served, and nobody else', async t => {
  const keys = {HEARSAY_KEYS: 'first-key,second-key'};
  const daemon = await startDaemon(t, {demo: true, variables: keys});
  t.regex(daemon.stdout(), /try .*"authorization: Bearer \$HEARSAY_KEY"/u);
  const withHost = {...process.env, HEARSAY_HOST: daemon.url};

  const own = await runCli(['status'], {...process.env, ...keys, HEARSAY_DATA_DIR: daemon.dataFolder});
  t.is(own.code, 0, `the daemon of this user gets the key of its config: ${own.stderr}`);
  t.is((await runCli(['status'], {...withHost, HEARSAY_KEY: 'second-key'})).code, 0);

  const without = await runCli(['status'], {...withHost, ...keys});
  t.not(without.code, 0, 'a daemon that is named is not told the keys of this one');
  t.regex(without.stderr, /wants a key: set HEARSAY_KEY/u);

  const models = async (headers: Record<string, string>) => (await fetch(`${daemon.url}/v1/models`, {headers})).status;
  t.is(await models({authorization: 'Bearer first-key'}), 200);
  t.is(await models({'x-api-key': 'second-key'}), 200);
  t.is(await models({authorization: 'Bearer wrong'}), 401);
});
