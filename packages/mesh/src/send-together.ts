import type {MessageStream} from '@libp2p/interface';

/** So much is sent at once without waiting for more: the most that one message of noise holds. */
const togetherBytesMax = 64 * 1024;

/** What is changed of a connection. */
type Sender = Pick<MessageStream, 'send' | 'writableNeedsDrain'>;

/**
 * From here on, what is sent in one turn of the event loop travels together, of whatever stream it is: encrypted once
 * and written with one system call, instead of once for each token of each answer. A turn ends when all that came in
 * has been looked at, so nothing waits for something that is not there yet. Returns what sends at once all that waits;
 * call it before the connection is closed.
 */
export function sendTogether(connection: Sender): () => void {
  const send = connection.send.bind(connection);
  let waiting: Uint8Array[] = [];
  let waitingBytes = 0;
  let turn: NodeJS.Immediate | undefined;

  function flush(): boolean {
    clearImmediate(turn);
    turn = undefined;
    if (waitingBytes === 0) return !connection.writableNeedsDrain;
    const bytes = waiting.length === 1 && waiting[0] ? waiting[0] : Buffer.concat(waiting, waitingBytes);
    waiting = [];
    waitingBytes = 0;
    return send(bytes);
  }

  function flushIfOpen(): void {
    try {
      flush();
    } catch {
      // The connection has ended since, which its streams are told by its `close`.
    }
  }

  connection.send = data => {
    for (const chunk of data instanceof Uint8Array ? [data] : data) waiting.push(chunk);
    waitingBytes += data.byteLength;
    if (waitingBytes >= togetherBytesMax) return flush();
    turn ??= setImmediate(flushIfOpen);
    return !connection.writableNeedsDrain;
  };
  return flushIfOpen;
}
