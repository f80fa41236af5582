import {noise} from '@chainsafe/libp2p-noise';
import type {ConnectionEncrypter, MessageStream} from '@libp2p/interface';

/** The largest length that stands before a message of noise. */
const messageBytesMax = 0xffff;

/**
 * noise, whose messages each leave in one piece, and that makes no error of the end of what has come. It hands on
 * length, text and tag by themselves, and the TCP transport makes a system call of each: three packets, and a receiver
 * that is woken twice for nothing.
 */
export function encrypter(): (components: Parameters<ReturnType<typeof noise>>[0]) => ConnectionEncrypter {
  const create = noise();
  return components => {
    const inner = create(components);
    return {
      protocol: inner.protocol,
      secureOutbound: async (connection, options) => {
        const secured = await inner.secureOutbound(inOnePiece(connection), options);
        awaitLengths(secured.connection);
        return secured;
      },
      secureInbound: async (connection, options) => {
        const secured = await inner.secureInbound(inOnePiece(connection), options);
        awaitLengths(secured.connection);
        return secured;
      },
    };
  };
}

/** From here on, each message is written at once. */
export function inOnePiece<Sender extends Pick<MessageStream, 'send'>>(connection: Sender): Sender {
  const send = connection.send.bind(connection);
  connection.send = data => send(data instanceof Uint8Array ? data : data.subarray());
  return connection;
}

/**
 * noise looks for the next message after each, and throws and catches an error when not even its length is there yet: a
 * twentieth of all that a mesh costs at rest. A length that the bytes cannot hold ends the look as well. The decoder is
 * none of the interface's; without it nothing is changed.
 */
function awaitLengths(secured: object): void {
  const decoder: unknown = Reflect.get(secured, 'decoder');
  const decode: unknown = typeof decoder === 'object' && decoder !== null && Reflect.get(decoder, 'lengthDecoder');
  if (typeof decoder !== 'object' || decoder === null || typeof decode !== 'function') return;
  Reflect.set(decoder, 'lengthDecoder', (bytes: {readonly byteLength: number}): unknown =>
    bytes.byteLength < 2 ? messageBytesMax : Reflect.apply(decode, decoder, [bytes]),
  );
}
