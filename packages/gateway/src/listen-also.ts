import {once} from 'node:events';
import type {Server} from 'node:http';
import {createServer} from 'node:net';
import type {Server as SocketServer} from 'node:net';
import {describeError} from '@hearsay/core';
import type {Log} from '@hearsay/core';

/**
 * Lets a server that listens already serve a second port as well, with the same rules: connections are handed to it.
 * Best effort: a taken port is a warning. The caller closes what it gets; open connections belong to the server.
 */
export async function listenAlso(
  server: Server,
  {alsoPort: port, host}: {readonly alsoPort?: number | undefined; readonly host: string},
  log: Log,
): Promise<readonly SocketServer[]> {
  if (port === undefined) return [];
  const listeners: SocketServer[] = [];
  for (const address of host === '127.0.0.1' ? ['127.0.0.1', '::1'] : [host]) {
    const listener = createServer(socket => server.emit('connection', socket));
    try {
      listener.listen(port, address);
      await once(listener, 'listening');
      listeners.push(listener);
    } catch (error) {
      // Many machines have no IPv6; some clients ask for `localhost` there (facts: client-apis §1.5).
      if (address === '::1') continue;
      log('warn', `port ${port} is not served, perhaps because Ollama itself runs: ${describeError(error)}`, {port});
    }
  }
  return listeners;
}
