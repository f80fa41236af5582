import {noise} from '@chainsafe/libp2p-noise';
import type {ConnectionEncrypter, MessageStream} from '@libp2p/interface';

/**
 * noise, whose messages each leave in one piece. It hands on length, text and tag by themselves, and the TCP transport
 * makes a system call of each: three packets, and a receiver that is woken twice for nothing.
 */
export function encrypter(): (components: Parameters<ReturnType<typeof noise>>[0]) => ConnectionEncrypter {
  const create = noise();
  return components => {
    const inner = create(components);
    return {
      protocol: inner.protocol,
      secureOutbound: async (connection, options) => inner.secureOutbound(inOnePiece(connection), options),
      secureInbound: async (connection, options) => inner.secureInbound(inOnePiece(connection), options),
    };
  };
}

/** From here on, each message is written at once. */
export function inOnePiece<Sender extends Pick<MessageStream, 'send'>>(connection: Sender): Sender {
  const send = connection.send.bind(connection);
  connection.send = data => send(data instanceof Uint8Array ? data : data.subarray());
  return connection;
}
