import {spawn} from 'node:child_process';
import {once} from 'node:events';
import {mkdtemp, rm} from 'node:fs/promises';
import {connect, createServer} from 'node:net';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

/** Makes a port on the loopback of a network namespace reachable from here; the URL stays the same for ever. */
export async function reachWithin(
  within: readonly string[],
  port: number,
  {teardown}: {readonly teardown: (run: () => unknown) => void},
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-carry-'));
  teardown(async () => rm(folder, {recursive: true, force: true}));
  const file = join(folder, 'socket');
  const script = join(import.meta.dirname, '..', '..', 'test', 'fixtures', 'carry-port.ts');
  const [program, ...args] = [...within, process.execPath, script, file, String(port)];
  const carrier = spawn(program, args, {stdio: ['pipe', 'pipe', 'inherit']});
  teardown(() => carrier.kill());
  await once(carrier.stdout, 'data');
  const server = createServer({allowHalfOpen: true}, outer => {
    const inner = connect({path: file, allowHalfOpen: true});
    const end = (): void => {
      outer.destroy();
      inner.destroy();
    };
    for (const side of [outer, inner]) side.on('error', end).on('close', end);
    outer.pipe(inner).pipe(outer);
  });
  teardown(() => server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no port');
  return `http://127.0.0.1:${address.port}`;
}
