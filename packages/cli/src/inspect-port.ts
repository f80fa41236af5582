import {once} from 'node:events';
import {readdir, readFile, readlink} from 'node:fs/promises';
import {createServer} from 'node:net';

/** Processes that are looked through for the owner of a port. */
const processesMax = 4096;

/** Whether somebody could listen on the port now: `0.0.0.0` for all interfaces, else one address. */
export async function isPortFree(port: number, host: string): Promise<boolean> {
  const server = createServer();
  try {
    server.listen({port, host, exclusive: true});
    await once(server, 'listening');
    return true;
  } catch {
    return false; // taken, or not for us to take: a daemon could not have it either
  } finally {
    await new Promise<void>(resolve => void server.close(() => resolve()));
  }
}

/** `name (process 123)` of whoever listens on the port; undefined where the system does not tell (only Linux does). */
export async function portOwner(port: number): Promise<string | undefined> {
  const sockets = new Set((await Promise.all(['tcp', 'tcp6'].map(async family => listeners(family, port)))).flat());
  if (sockets.size === 0) return undefined;
  const pids = (await readdir('/proc').catch(() => [])).filter(name => /^\d+$/u.test(name)).slice(0, processesMax);
  for (const pid of pids) {
    const files = await readdir(`/proc/${pid}/fd`).catch(() => []);
    for (const file of files) {
      if (!sockets.has(await readlink(`/proc/${pid}/fd/${file}`).catch(() => ''))) continue;
      const name = await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => 'a program');
      return `${name.trim()} (process ${pid})`;
    }
  }
  return undefined;
}

/** The sockets as `/proc/PID/fd` names them. */
async function listeners(family: string, port: number): Promise<readonly string[]> {
  const table = await readFile(`/proc/net/${family}`, 'utf8').catch(() => '');
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const isListening = '0A';
  return table.split('\n').flatMap(line => {
    const [, local = '', , state, , , , , , inode] = line.trim().split(/\s+/u);
    return state === isListening && local.endsWith(suffix) ? [`socket:[${inode}]`] : [];
  });
}
