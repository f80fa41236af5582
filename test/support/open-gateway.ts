import {once} from 'node:events';
import {connect} from 'node:net';
import type {Socket} from 'node:net';
import {startGateway} from '@hearsay/gateway';
import type {Gateway, GatewayConfig} from '@hearsay/gateway';
import {realEnvironment} from './environment.ts';
import {statusReport} from './scripted-cluster.ts';
import type {ScriptedCluster} from './scripted-cluster.ts';

/** A gateway on a free port; the caller closes it. */
export function openGateway(cluster: ScriptedCluster, changes: Partial<GatewayConfig> = {}): Promise<Gateway> {
  return startGateway(
    {host: '127.0.0.1', port: 0, anyPort: false, ...changes},
    {...realEnvironment(), cluster, status: statusReport},
  );
}

/** A socket that shows what really comes over the wire. */
export interface WireClient extends Disposable {
  readonly socket: Socket;
  /** Everything that has come so far. */
  readonly text: () => string;
  /** Resolves when the text so far matches, and rejects when that does not happen in time. */
  until(pattern: RegExp, withinMs?: number): Promise<string>;
}

export async function connectTo(url: string): Promise<WireClient> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  let text = '';
  socket.setEncoding('utf8');
  socket.on('data', chunk => {
    text += String(chunk);
  });
  socket.on('error', () => {}); // a cut connection is what some tests want
  await once(socket, 'connect');
  return {
    socket,
    text: () => text,
    until: async (pattern, withinMs = 5000) => {
      await eventually(() => pattern.test(text), `${pattern} in what came: ${JSON.stringify(text)}`, withinMs);
      return text;
    },
    [Symbol.dispose]: () => socket.destroy(),
  };
}

/** Limits say what a machine needs that does nothing else; where tests and neighbours share it, all takes longer. */
const patience = 5;

/**
 * What one pause counts for at most. The gateway runs in this process, so it can do nothing in the time for which the
 * process itself is stopped: such a pause says nothing against it.
 */
const pauseMsMax = 20;

/** Waits for a condition, with a limit. */
export async function eventually(condition: () => boolean, what: string, withinMs: number = 5000): Promise<void> {
  let waitedMs = 0;
  while (!condition()) {
    if (waitedMs > patience * withinMs) throw new Error(`not within ${patience} times ${withinMs} ms: ${what}`);
    const beforeMs = performance.now();
    await new Promise(resolve => {
      setTimeout(resolve, 2);
    });
    waitedMs += Math.min(performance.now() - beforeMs, pauseMsMax);
  }
}

/** A POST as bytes, with more header lines if wanted. */
export function post(path: string, body: string, headers: readonly string[] = []): string {
  return [
    `POST ${path} HTTP/1.1`,
    'Host: localhost',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...headers,
    '',
    body,
  ].join('\r\n');
}
