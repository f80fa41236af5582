import test from 'ava';
import {plainPath} from './plain-path.ts';

const table: readonly (readonly [url: string, path: string])[] = [
  ['/v1/models', '/v1/models'],
  ['//v1///models/', '/v1/models/'],
  ['/v1/v1/models', '/v1/models'],
  ['/v1/api/chat', '/api/chat'],
  ['/api/v1/chat/completions', '/v1/chat/completions'],
  ['/api/api/tags', '/api/tags'],
  ['/v1/models/v1/v1', '/v1/models/v1/v1'],
  ['http://localhost:4327/v1/models?x=//a?b', '/v1/models?x=//a?b'],
  ['HTTPS://h', '/'],
  ['http://h?x=1', '/?x=1'],
  ['/?next=http://x//y', '/?next=http://x//y'],
  ['/v1x/v1', '/v1x/v1'],
  ['', '/'],
  ['*', '/*'],
];
for (const [url, path] of table) {
  test(`C28: ${JSON.stringify(url)} is ${path}`, t => t.is(plainPath(url), path));
}
