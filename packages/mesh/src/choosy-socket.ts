import {createSocket} from 'node:dgram';
import type {Socket} from 'node:dgram';

/**
 * A UDP socket that hands on only what is wanted. Most packets on the port of multicast DNS are of printers and
 * televisions, and to read one costs far more than to see that.
 */
export function choosySocket(isWanted: (message: Buffer, from: string) => boolean): Socket {
  const socket = createSocket({type: 'udp4', reuseAddr: true});
  const emit: unknown = socket.emit.bind(socket);
  Reflect.set(socket, 'emit', (event: string, ...args: unknown[]): unknown => {
    const [message, sender] = args;
    const isUnwanted = event === 'message' && Buffer.isBuffer(message) && !isWanted(message, addressIn(sender));
    return typeof emit === 'function' && !isUnwanted ? Reflect.apply(emit, socket, [event, ...args]) : false;
  });
  return socket;
}

function addressIn(sender: unknown): string {
  return typeof sender === 'object' && sender !== null && 'address' in sender ? String(sender.address) : '';
}
