import {formatPolicy} from '@hearsay/core';
import test from 'ava';
import type {JsonObject} from './json.ts';
import {isProblem} from './problem.ts';
import {readPolicy} from './read-policy.ts';

function policy(header: string | undefined, body: JsonObject): string {
  const asked = readPolicy(header, body['provider']);
  return isProblem(asked) ? `${asked.status} ${asked.param}` : `${asked.policyFrom}: ${formatPolicy(asked.policy)}`;
}

const cases: readonly (readonly [string | undefined, JsonObject, string])[] = [
  [undefined, {}, 'undefined: auto'],
  ['auto', {}, 'header: auto'],
  [undefined, {provider: {order: ['a', 'b']}}, 'provider: prefer=a,b'],
  [undefined, {provider: {order: ['a'], allow_fallbacks: false}}, 'provider: pin=a'],
  [undefined, {provider: {only: ['a'], order: ['b']}}, 'provider: pin=a'],
  [undefined, {provider: {ignore: ['c'], sort: 'price'}}, 'provider: auto;exclude=c'],
  ['pin=h', {provider: {order: ['a'], ignore: ['c']}}, 'header: pin=h;exclude=c'],
  ['bogus', {}, '400 x-hearsay-policy'],
  [undefined, {provider: {order: 'a'}}, '400 provider'],
  [undefined, {provider: ['a']}, '400 provider'],
  [undefined, {provider: {only: ['a,b']}}, '400 provider'],
];
for (const [header, body, expected] of cases) {
  test(`header ${header ?? '-'} and body ${JSON.stringify(body)} mean ${expected}`, t => {
    t.is(policy(header, body), expected);
  });
}
