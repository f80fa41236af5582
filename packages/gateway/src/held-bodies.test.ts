import test from 'ava';
import {gzipSync} from 'node:zlib';
import {eventually, openGateway} from '../../../test/support/open-gateway.ts';
import {chatEvents, scriptedAnswer, scriptedBody, scriptedCluster} from '../../../test/support/scripted-cluster.ts';

const body = JSON.stringify({model: 'tiny', messages: [{role: 'user', content: 'x'.repeat(700)}]});

test('all bodies together have a limit, and make room when they are answered', async t => {
  const answer = Promise.withResolvers<void>();
  const cluster = scriptedCluster(async () => {
    await answer.promise;
    return scriptedAnswer(scriptedBody(chatEvents(['hello'])));
  });
  await using gateway = await openGateway(cluster, {heldBytesMax: 1000});
  const ask = async (sent: string | Uint8Array<ArrayBuffer>, headers = {}): Promise<Response> =>
    fetch(`${gateway.url}/v1/chat/completions`, {method: 'POST', body: sent, headers});
  const first = ask(body);
  await eventually(() => cluster.dispatched.length === 1, 'the first is under way');

  const zipped = Uint8Array.from(gzipSync(body));
  for (const refused of [await ask(body), await ask(zipped, {'content-encoding': 'gzip'})]) {
    t.is(refused.status, 429);
    t.is(refused.headers.get('retry-after'), '1');
    t.regex(await refused.text(), /"rate_limit_exceeded"/u);
  }
  t.is((await ask('{"model": "tiny", "messages": 1}')).status, 400, 'a small one still has room');

  answer.resolve();
  t.is((await first).status, 200);
  await (await first).text();
  t.is((await ask(body)).status, 200);
});
