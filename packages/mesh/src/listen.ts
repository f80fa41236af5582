import {once} from 'node:events';
import {createServer} from 'node:net';
import {Fault} from '@hearsay/core';

/** Ports that are tried after the wanted one: enough for many daemons on one machine, and few enough to be found. */
const portsTried = 50;

export interface Listening {
  readonly port: number;
  /** Multiaddrs for libp2p: one port, each family that this machine has. */
  readonly addresses: readonly string[];
}

/**
 * Finds a port that is free for IPv4 and IPv6 alike, from `wanted` upwards; 0 takes any. libp2p, told to go on
 * without a listener, would be silent about a port that is taken.
 */
export async function findPort(wanted: number): Promise<Listening> {
  for (let attempt = 0; attempt <= portsTried; attempt++) {
    const port = wanted === 0 ? 0 : wanted + attempt;
    if (port > 65_535) break;
    const v4 = await probe(port, '0.0.0.0');
    if (v4 === 'taken') continue;
    const v6 = await probe(v4 === 'unsupported' ? port : v4, '::');
    if (v6 === 'taken') continue;
    if (v4 === 'unsupported' && v6 === 'unsupported') break;
    const chosen = v4 === 'unsupported' ? Number(v6) : v4;
    const addresses = [
      ...(v4 === 'unsupported' ? [] : [`/ip4/0.0.0.0/tcp/${chosen}`]),
      ...(v6 === 'unsupported' ? [] : [`/ip6/::/tcp/${chosen}`]),
    ];
    return {port: chosen, addresses};
  }
  throw new Fault('BAD_CONFIG', `no free port for the mesh from ${wanted} on; set another mesh.port`);
}

async function probe(port: number, host: string): Promise<number | 'taken' | 'unsupported'> {
  const server = createServer();
  try {
    server.listen({port, host, ipv6Only: host === '::', exclusive: true});
    await once(server, 'listening');
    const address = server.address();
    return address === null || typeof address === 'string' ? 'unsupported' : address.port;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    return code === 'EADDRINUSE' || code === 'EACCES' ? 'taken' : 'unsupported';
  } finally {
    await new Promise<void>(resolve => void server.close(() => resolve()));
  }
}
