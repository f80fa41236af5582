import test from 'ava';
import {isAllowedHost, isAllowedOrigin, isLoopback} from './front-door.ts';

const mine = ['127.0.0.1:4327', 'localhost', 'LOCALHOST:1', 'localhost.', 'app.localhost:80', 'spark.local:4327'];
const near = [
  '[::1]:4327',
  '[fe80::1]',
  '192.168.1.5:4327',
  '10.0.0.1',
  '172.20.0.2',
  '100.100.1.1',
  'x.internal',
  'spark',
];
for (const host of [...mine, ...near]) {
  test(`C31: the Host header ${host} is this machine`, t => t.true(isAllowedHost(host, ['spark'])));
}

const foreign = [
  'evil.example',
  'localhost.evil.example',
  'evil.example:4327',
  '8.8.8.8',
  '[2001:db8::1]',
  '',
  'notlocalhost',
];
for (const host of [...foreign, '172.32.0.1', '127.0.0.1.nip.io', 'local', 'evil-local']) {
  test(`C31: the Host header ${JSON.stringify(host)} is foreign`, t => t.false(isAllowedHost(host, ['spark'])));
}

const rules = {corsOrigins: ['https://chat.example'], hostnames: []};

for (const origin of ['http://localhost:3000', 'https://127.0.0.1', 'http://[::1]:5', 'http://0.0.0.0:8080']) {
  test(`a page of ${origin} may call`, t => t.true(isAllowedOrigin(origin, 'localhost:4327', rules)));
}

for (const origin of [
  'null',
  'https://evil.example',
  'http://localhost.evil.example',
  'https://chat.example.evil',
  'http://127.0.0.1%.evil.example',
  '',
]) {
  test(`C31: a page of ${JSON.stringify(origin)} may not call`, t => {
    t.false(isAllowedOrigin(origin, 'localhost:4327', rules));
  });
}

test('a listed page may call, and every page when the owner says so', t => {
  t.true(isAllowedOrigin('https://chat.example', 'localhost', rules));
  t.true(isAllowedOrigin('https://other.example', 'localhost', {...rules, corsOrigins: ['*']}));
});

test('a page may call the host it came from, but not by a foreign name for this machine', t => {
  t.true(isAllowedOrigin('http://192.168.1.5:4327', '192.168.1.5:4327', rules));
  t.false(isAllowedOrigin('http://192.168.1.5:80', '192.168.1.5:4327', rules));
  t.false(isAllowedOrigin('http://evil.example:4327', 'evil.example:4327', rules));
});

test('only loopback addresses count as loopback', t => {
  t.deepEqual(['127.0.0.1', '127.9.9.9', '::1', 'localhost'].map(isLoopback), [true, true, true, true]);
  t.deepEqual(['0.0.0.0', '::', '192.168.1.1', '127.evil.example'].map(isLoopback), [false, false, false, false]);
});
