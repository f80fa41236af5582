import {Agent, get} from 'node:http';
import type {IncomingMessage} from 'node:http';
import {connect} from 'node:net';
import test from 'ava';
import {chatText, counted} from '../support/chat.ts';
import {startDaemon} from '../support/daemon.ts';
import {modelFolder} from '../support/models.ts';
import {until} from '../support/until.ts';

const unix = process.platform === 'win32' ? test.serial.skip : test.serial;

unix('C70: more connections than the system allows files close nothing but themselves', async t => {
  const daemon = await startDaemon(t, {
    models: [await modelFolder(t, 'tiny-count-F16.gguf')],
    within: ['sh', '-c', 'ulimit -n 256; exec "$@"', 'sh'],
  });
  const agent = new Agent({keepAlive: true, maxSockets: 1});
  const health = async (): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const answered = (response: IncomingMessage): void =>
        void response.resume().once('end', () => resolve(response.statusCode));
      get(`${daemon.url}/health`, {agent}, answered).once('error', reject);
    });
  t.is(await health(), 200);

  const port = Number(new URL(daemon.url).port);
  let closed = 0;
  const sockets = Array.from({length: 400}, () => connect(port, '127.0.0.1').on('error', () => {}));
  for (const socket of sockets) socket.once('close', () => (closed += 1));
  await until('those that are too many are closed', () => closed > 300);
  t.is(await health(), 200, 'who was there before is served');
  await until('the owner is told', () => /connections to the gateway: further ones are closed/u.test(daemon.stderr()));

  for (const socket of sockets) socket.destroy();
  await until('there is room again', async () => {
    const told = await fetch(`${daemon.url}/health`).catch(() => undefined);
    return told?.status === 200;
  });
  t.is((await chatText(daemon.url, {model: 'tiny-count-F16', max_tokens: 3})).text, counted(3));
  t.notRegex(daemon.stderr(), /a bug in hearsay/u);
  agent.destroy();
});
