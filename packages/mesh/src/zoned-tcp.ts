import type {Server, Socket} from 'node:net';
import type {Listener, Transport} from '@libp2p/interface';
import {tcp} from '@libp2p/tcp';
import type {TCPComponents} from '@libp2p/tcp';
import {hostPortOf} from './addresses.ts';

/**
 * libp2p's TCP with link-local IPv6 addresses, which mean something on one interface only: the zone that names it is
 * kept when dialling, where libp2p drops it, and left out of whoever comes in, whom libp2p turns away for it (R48).
 */
export function zonedTcp(): (components: TCPComponents) => Transport {
  const create = tcp();
  return components => {
    const transport = create(components);
    const dial = transport.dial.bind(transport);
    const createListener = transport.createListener.bind(transport);
    transport.dial = async (address, options) => {
      const host = hostPortOf(address)?.host;
      // What is among the options goes to node:net as it is.
      const zoned = host?.includes('%') === true ? {...options, host} : options;
      return dial(address, zoned);
    };
    transport.createListener = options => {
      const listener = createListener(options);
      serverOf(listener)?.prependListener('connection', leaveOutZone);
      return listener;
    };
    return transport;
  };
}

/** A public field of libp2p's listener that its interface does not name. */
function serverOf(listener: Listener): Pick<Server, 'prependListener'> | undefined {
  const server: unknown = Reflect.get(listener, 'server');
  return isServer(server) ? server : undefined;
}

function isServer(value: unknown): value is Pick<Server, 'prependListener'> {
  return typeof value === 'object' && value !== null && 'prependListener' in value;
}

function leaveOutZone(socket: Socket): void {
  const {remoteAddress} = socket;
  if (remoteAddress?.includes('%') !== true) return;
  Object.defineProperty(socket, 'remoteAddress', {value: remoteAddress.replace(/%.*$/u, '')});
}
