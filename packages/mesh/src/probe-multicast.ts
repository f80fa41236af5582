import {Buffer} from 'node:buffer';
import {networkInterfaces} from 'node:os';
import multicastDns from 'multicast-dns';
import {describeError} from '@hearsay/core';
import type {Clock, Random} from '@hearsay/core';

/** What this machine's own multicast came to on one interface. */
export interface MulticastProbe {
  readonly interface: string;
  readonly address: string;
  /** Why nothing came back; undefined when it did. */
  readonly problem: string | undefined;
}

/** A packet to oneself comes back within a millisecond; a machine under load takes longer. */
const probeMsMax = 2000;

/** Questions to each interface within that time: the first packet of a socket may be lost. */
const questionGapMs = 400;

/** Container hosts have hundreds of virtual interfaces. */
const probesMax = 32;

/**
 * Asks by multicast DNS on every IPv4 interface, and sees whether the question comes back to this machine. It proves
 * that the system lets multicast out and in, and not that the switch or the access point passes it on.
 */
export async function probeMulticast(deps: {
  readonly clock: Clock;
  readonly random: Random;
}): Promise<readonly MulticastProbe[]> {
  const addresses = Object.entries(networkInterfaces()).flatMap(([name, infos = []]) =>
    infos.flatMap(({family, internal, address}) => (family === 'IPv4' && !internal ? [{name, address}] : [])),
  );
  return Promise.all(
    addresses.slice(0, probesMax).map(async ({name, address}) => ({
      interface: name,
      address,
      problem: await problemOf(
        address,
        `_hearsay-probe-${Buffer.from(deps.random.bytes(8)).toString('hex')}._udp.local`,
        deps.clock,
      ),
    })),
  );
}

async function problemOf(address: string, question: string, clock: Clock): Promise<string | undefined> {
  const dns = multicastDns({interface: address, bind: '0.0.0.0', port: 5353, reuseAddr: true});
  const {promise, resolve} = Promise.withResolvers<string | undefined>();
  const fail = (error: unknown): void => {
    if (error instanceof Error) resolve(describeError(error));
  };
  dns.on('error', fail);
  dns.on('warning', error => ('syscall' in error ? fail(error) : undefined));
  dns.on('query', ({questions = []}) => {
    if (questions.some(({name}) => name === question)) resolve(undefined);
  });
  using timers = new DisposableStack();
  for (let ms = 0; ms < probeMsMax; ms += questionGapMs) {
    timers.use(clock.after(ms, () => dns.query({questions: [{name: question, type: 'PTR'}]}, fail)));
  }
  timers.use(clock.after(probeMsMax, () => resolve('a packet that was sent does not come back')));
  try {
    return await promise;
  } finally {
    dns.destroy();
  }
}
