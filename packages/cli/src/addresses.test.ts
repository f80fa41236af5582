import test from 'ava';
import {parseDaemonUrl, parseListen} from './addresses.ts';

const urls: readonly (readonly [string, string])[] = [
  ['spark', 'http://spark:4327'],
  [':8080', 'http://127.0.0.1:8080'],
  ['spark:8080', 'http://spark:8080'],
  ['10.0.0.5', 'http://10.0.0.5:4327'],
  ['[::1]:8080', 'http://[::1]:8080'],
  ['[::1]', 'http://[::1]:4327'],
  ['fe80::1', 'http://[fe80::1]:4327'],
  ['0.0.0.0:8080', 'http://127.0.0.1:8080'],
  ['[::]:8080', 'http://[::1]:8080'],
  ['http://spark', 'http://spark'],
  ['http://0.0.0.0:9/', 'http://127.0.0.1:9'],
  ['https://llm.example/prefix/', 'https://llm.example/prefix'],
  [' spark:1 ', 'http://spark:1'],
];
for (const [text, url] of urls) {
  test(`the daemon "${text}" is at ${url}`, t => t.is(parseDaemonUrl(text), url));
}

for (const text of ['', 'spark:', 'spark:99999', 'spark:x', 'a b', 'http://', 'user@host']) {
  test(`"${text}" is no address of a daemon, and the message says so`, t => {
    t.throws(() => parseDaemonUrl(text), {message: /cannot use ".*" as a daemon's address/u});
  });
}

const listens: readonly (readonly [string, string | undefined, number | undefined])[] = [
  ['0.0.0.0:80', '0.0.0.0', 80],
  [':0', undefined, 0],
  ['4327', undefined, 4327],
  ['localhost', 'localhost', undefined],
  ['[::]:4327', '::', 4327],
];
for (const [text, host, port] of listens) {
  test(`--gateway ${text} is understood`, t => t.deepEqual(parseListen(text), {host, port}));
}

test('--gateway with something else is not understood', t => {
  for (const text of ['', 'a:b:c', 'host:99999', 'http://host']) t.is(parseListen(text), undefined, text);
});
