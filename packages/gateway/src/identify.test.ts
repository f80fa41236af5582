import {IncomingMessage} from 'node:http';
import {Socket} from 'node:net';
import test from 'ava';
import {realEnvironment} from '../../../test/support/environment.ts';
import {callerIn, identifyBy, mayAdminister} from './identify.ts';
import {startKeyRing} from './key-ring.ts';
import type {KeyRules} from './identify.ts';
import type {KeyRing} from './key-ring.ts';

const emptyStore = {read: async () => undefined, write: async () => undefined};

async function ringWith(...wishes: readonly object[]): Promise<{ring: KeyRing; secrets: readonly string[]}> {
  const ring = await startKeyRing(emptyStore, realEnvironment());
  const secrets: string[] = [];
  for (const wish of wishes) secrets.push((await ring.create(wish)).secret);
  return {ring, secrets};
}

function requestFrom(address: string, headers: Readonly<Record<string, string>> = {}): IncomingMessage {
  const socket = new Socket();
  Object.defineProperty(socket, 'remoteAddress', {value: address});
  const request = new IncomingMessage(socket);
  request.method = 'POST';
  Object.assign(request.headers, headers);
  return request;
}

const lax = {keys: [], requireKey: false, insecure: false};
const identify = (request: IncomingMessage, rules: KeyRules) => identifyBy(rules)(request);

test('programs of this machine need no key, others do, and a required key is required of all', async t => {
  const {ring} = await ringWith({name: 'notes'});
  for (const address of ['127.0.0.1', '::1', '::ffff:127.0.0.1', '127.8.8.8']) {
    t.is(identify(requestFrom(address), {ring, ...lax}), undefined, address);
    t.is(identify(requestFrom(address), {ring, ...lax, requireKey: true})?.status, 401);
  }
  for (const address of ['192.168.1.5', '::ffff:192.168.1.5', 'fe80::1', '']) {
    t.is(identify(requestFrom(address), {ring, ...lax})?.status, 401, address);
    t.is(identify(requestFrom(address, {authorization: 'Bearer sk-123'}), {ring, ...lax})?.status, 401);
    t.is(identify(requestFrom(address), {ring, ...lax, insecure: true}), undefined);
  }
});

test('a key comes as Bearer or as x-api-key and names its application', async t => {
  const {ring, secrets} = await ringWith({name: 'notes'}, {name: 'ops', admin: true});
  const [notes = '', ops = ''] = secrets;
  for (const headers of [
    {authorization: `Bearer ${notes}`},
    {authorization: `bearer  ${notes} `},
    {'x-api-key': notes},
  ]) {
    const request = requestFrom('192.168.1.5', headers);
    t.is(identify(request, {ring, ...lax}), undefined);
    t.is(callerIn(request)?.name, 'notes');
    t.false(mayAdminister(request));
  }
  const admin = requestFrom('192.168.1.5', {'x-api-key': ops});
  identify(admin, {ring, ...lax});
  t.true(mayAdminister(admin));
});

test('a revoked key is refused even where none is needed; a placeholder is not', async t => {
  const {ring, secrets} = await ringWith({name: 'notes'});
  await ring.revoke('notes');
  const headers = {authorization: `Bearer ${secrets[0]}`};
  t.is(identify(requestFrom('127.0.0.1', headers), {ring, ...lax, insecure: true})?.status, 401);
  const placeholder = requestFrom('127.0.0.1', {authorization: 'Bearer ollama'});
  t.is(identify(placeholder, {ring, ...lax}), undefined);
  t.is(callerIn(placeholder), undefined);
  t.true(mayAdminister(placeholder));
});

test('too many requests of a key are a 429 with the time to come back', async t => {
  const {ring, secrets} = await ringWith({name: 'notes', perMinute: 1});
  const headers = {'x-api-key': secrets[0] ?? ''};
  t.is(identify(requestFrom('127.0.0.1', headers), {ring, ...lax}), undefined);
  const problem = identify(requestFrom('127.0.0.1', headers), {ring, ...lax});
  t.is(problem?.status, 429);
  t.regex(problem?.headers?.['retry-after'] ?? '', /^\d+$/u);
});

test('a key of the config opens everything, and where there is one every client needs one', async t => {
  const {ring, secrets} = await ringWith({name: 'notes'});
  const rules = {...lax, ring, keys: ['owner']};
  const own = requestFrom('192.168.1.5', {'x-api-key': 'owner'});
  t.is(identify(own, rules), undefined);
  t.true(mayAdminister(own));
  t.is(identify(requestFrom('127.0.0.1'), rules)?.status, 401);
  const application = requestFrom('192.168.1.5', {'x-api-key': secrets[0] ?? ''});
  t.is(identify(application, rules), undefined);
  t.is(callerIn(application)?.name, 'notes');
});
