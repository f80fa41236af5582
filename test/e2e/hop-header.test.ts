import test from 'ava';
import {startTwoNodes} from '../support/two-nodes.ts';

test.serial('S44: no header of a client switches routing off or says who ran its request', async t => {
  const {holder, entry} = await startTwoNodes(t, ['tiny-count-F16.gguf']);
  const claims = {'x-llmman-hop': '1', 'x-hearsay-hop': '1', 'x-hearsay-node': 'mallory', 'x-hearsay-attempts': '7'};
  const response = await fetch(`${entry.url}/v1/chat/completions`, {
    method: 'POST',
    headers: {'content-type': 'application/json', ...claims},
    body: JSON.stringify({model: 'tiny-count-F16', max_tokens: 3, messages: [{role: 'user', content: 'count'}]}),
  });
  t.is(response.status, 200);
  t.regex(await response.text(), / 1 2 3"/u);
  t.is(response.headers.get('x-hearsay-node'), holder.name);
  t.is(response.headers.get('x-hearsay-attempts'), '1');
});
