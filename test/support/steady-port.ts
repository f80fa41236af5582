import {randomInt} from 'node:crypto';
import {once} from 'node:events';
import {readFileSync} from 'node:fs';
import {createServer} from 'node:net';

/** Below are the ports of well-known services. */
const portMin = 10_000;

/** So many taken ones in a row mean that something else is wrong. */
const triesMax = 50;

/**
 * A port that is free and that the system gives to nobody who asks for any port: between this call and its use, or
 * while a server of a test is away, no other test gets it by chance. It does get one that names it.
 */
export async function steadyPort(): Promise<number> {
  const portMax = firstChosenPort();
  for (let tries = 1; tries <= triesMax; tries += 1) {
    const port = randomInt(portMin, portMax);
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port from ${portMin} to ${portMax}`);
}

/** Where the ports begin that the system chooses by itself; elsewhere they are in the uppermost quarter. */
function firstChosenPort(): number {
  if (process.platform !== 'linux') return 49_152;
  const [first] = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').split(/\s+/u);
  return Math.max(portMin + 1000, Number(first));
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
