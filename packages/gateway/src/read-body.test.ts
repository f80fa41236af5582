import {once} from 'node:events';
import {request} from 'node:http';
import {setFlagsFromString} from 'node:v8';
import {runInNewContext} from 'node:vm';
import test from 'ava';
import {openGateway} from '../../../test/support/open-gateway.ts';
import {scriptedAnswer, scriptedBody, scriptedCluster} from '../../../test/support/scripted-cluster.ts';
import {until} from '../../../test/support/until.ts';

const megabyte = new Uint8Array(1024 * 1024).fill(13); // the letter that boundaries are looked for by
const sizeMegabytes = 20;

/** Bytes outside of the heap that something still refers to. */
function heldBytes(): number {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  if (typeof collect !== 'function') throw new Error('no gc');
  collect();
  return process.memoryUsage().arrayBuffers;
}

for (const fields of [{}, {response_format: 'text'}, {stream: 'true'}]) {
  test.serial(`a recording is held once while it is written down: ${JSON.stringify(fields)}`, async t => {
    const hold = Promise.withResolvers<void>();
    const cluster = scriptedCluster(async () => {
      await hold.promise;
      return scriptedAnswer(scriptedBody(['{"text":"hello"}']), {contentType: 'application/json'});
    });
    await using gateway = await openGateway(cluster);
    const before = heldBytes();
    const headers = {'content-type': 'multipart/form-data; boundary=x'};
    const sending = request(`${gateway.url}/v1/audio/transcriptions`, {method: 'POST', headers});
    const answered = once(sending, 'response');
    for (const [name, text] of Object.entries({model: 'tiny', ...fields})) {
      sending.write(`--x\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${text}\r\n`);
    }
    sending.write('--x\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n\r\n');
    for (let count = 0; count < sizeMegabytes; count += 1) {
      if (!sending.write(megabyte)) await once(sending, 'drain');
    }
    sending.end('\r\n--x--\r\n');
    await until('it has come', () => cluster.dispatched.length === 1);
    const size = cluster.dispatched[0]?.request.body.length ?? 0;
    t.true(size > sizeMegabytes * megabyte.length);
    const most = 1.3 * size;
    await until('the rest of it is let go', () => heldBytes() - before < most, 2000).catch(() => undefined);
    t.true(heldBytes() - before < most, `${Math.round((heldBytes() - before) / 1e6)} MB`);
    hold.resolve();
    await answered;
    sending.destroy();
  });
}
