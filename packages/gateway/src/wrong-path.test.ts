import test from 'ava';
import {allowedAt} from './wrong-path.ts';

const allowed = new Map([
  ['/', 'GET'],
  ['/v1/models', 'GET, HEAD'],
  ['/v1/models/*', 'GET, HEAD, OPTIONS'],
  ['/v1/chat', 'POST'],
  ['/api/blobs/*', 'HEAD, POST'],
]);

for (const [url, expected] of [
  ['/v1/chat', 'POST'],
  ['/v1/chat/', 'POST'],
  ['//v1/v1/chat?x=1', 'POST'],
  ['/v1/ch%61t', 'POST'],
  ['/v1/chat#x', 'POST'],
  ['/', 'GET'],
  ['/v1/models', 'GET, HEAD'],
  ['/v1/models/a/b', 'GET, HEAD, OPTIONS'],
  ['/v1/models/a/', 'GET, HEAD, OPTIONS'],
  ['/api/blobs/', undefined],
  ['/v1/models/%zz', 'GET, HEAD, OPTIONS'],
  ['/v1/chatter', undefined],
  ['/v1/chat/more', undefined],
  ['/v1/%zz', undefined],
  ['/*', undefined],
] as const) {
  test(`the path of ${url} allows ${expected ?? 'nothing, since there is none'}`, t => {
    t.is(allowedAt(url, allowed), expected);
  });
}
