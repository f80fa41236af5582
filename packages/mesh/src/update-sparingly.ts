/** State of a yamux stream on which both sides have agreed, and whose reader is not paused. */
const established = 3;

/** What a stream of js-yamux has inside. */
interface YamuxStream {
  readonly state: number;
  /** What the peer may send at once, and what is left of it. */
  readonly recvWindow: number;
  readonly recvWindowCapacity: number;
  sendWindowUpdate: () => void;
}

/**
 * js-yamux answers every frame of data with an update of the window, so that each token and each record costs a packet
 * in the other direction, with its encryption and a system call on both sides. From here on the stream sends one when
 * half of the window is used, as other implementations do: the peer still always has half a window to send into. A
 * stream that looks otherwise inside is left as it is.
 */
export function updateSparingly(stream: object): void {
  if (!isYamuxStream(stream)) return;
  const sendWindowUpdate = stream.sendWindowUpdate.bind(stream);
  stream.sendWindowUpdate = () => {
    const used = stream.recvWindow - stream.recvWindowCapacity;
    if (stream.state === established && used < stream.recvWindow / 2) return;
    sendWindowUpdate();
  };
}

function isYamuxStream(stream: object): stream is YamuxStream {
  return (
    'sendWindowUpdate' in stream &&
    typeof stream.sendWindowUpdate === 'function' &&
    'state' in stream &&
    typeof stream.state === 'number' &&
    'recvWindow' in stream &&
    typeof stream.recvWindow === 'number' &&
    'recvWindowCapacity' in stream &&
    typeof stream.recvWindowCapacity === 'number'
  );
}
