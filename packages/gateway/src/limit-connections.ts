import type {Server, Socket} from 'node:net';
import type {Environment} from '@hearsay/core';

/** Far more than the machines of one owner need, and few enough that their buffers fit into memory. */
const connectionsMaxUsual = 4096;

/** Fewer would be no gateway. */
const connectionsMin = 16;

/** What the mesh may have open at its largest, with engines, logs, models and the journal. */
const filesOfOthers = 600;

/** Who floods the gateway must not flood the log. */
const dropGapMs = 60_000;

/**
 * Closes at once what is more than the system has files for, on whichever port it came: other listeners hand their
 * connections to this server. Whoever is turned away sees only a closed connection; the owner learns why.
 */
export function limitConnections(server: Server, openFilesMax: number | undefined, {clock, log}: Environment): void {
  const connectionsMax = connectionsFor(openFilesMax);
  let open = 0;
  let toldAtMs = -Infinity;
  server.on('connection', (socket: Socket) => {
    if (open < connectionsMax) {
      open += 1;
      socket.once('close', () => (open -= 1));
      return;
    }
    socket.destroy();
    if (clock.monotonicMs() - toldAtMs < dropGapMs) return;
    toldAtMs = clock.monotonicMs();
    const message = `more than ${connectionsMax} connections to the gateway: further ones are closed at once`;
    log('warn', `${message}; if these are your own, raise the limit of open files (ulimit -n)`);
  });
}

/** Pure: as many as leave the mesh, the engines and the files what they need; a running request has two. */
function connectionsFor(openFilesMax: number = Infinity): number {
  return Math.max(connectionsMin, Math.min(connectionsMaxUsual, Math.floor((openFilesMax - filesOfOthers) / 2)));
}
