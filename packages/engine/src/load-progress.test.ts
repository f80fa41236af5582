import test from 'ava';
import {readProgress} from './load-progress.ts';

const loading = (payload: string): string => `cmd_child_to_router:state:{"state":"loading","payload":${payload}}`;

test('the share of a load counts its stages', t => {
  t.deepEqual(readProgress(loading('{"stages":["text_model"],"current":"text_model","value":0.5}')), {
    kind: 'loading',
    share: 0.5,
  });
  t.deepEqual(readProgress(loading('{"stages":["text_model","mmproj"],"current":"mmproj","value":0.5}')), {
    kind: 'loading',
    share: 0.75,
  });
});

test('a line that says ready is understood although it was cut, and other lines tell nothing', t => {
  t.deepEqual(readProgress('cmd_child_to_router:state:{"state":"ready","payload":{"id":"/mod'), {kind: 'ready'});
  for (const line of ['', 'main: loading', loading('{}'), loading('{"value":7}'), loading('{"value":"x"}')]) {
    t.is(readProgress(line), undefined, line);
  }
});
