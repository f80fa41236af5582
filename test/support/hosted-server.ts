import {once} from 'node:events';
import {createServer} from 'node:http';
import type {IncomingHttpHeaders, IncomingMessage, ServerResponse} from 'node:http';
import type {ExecutionContext} from 'ava';

interface HostedCall {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readonly<Record<string, unknown>>;
}

/** A service on the internet with OpenAI's API, except that it is on loopback. */
export interface HostedServer {
  /** The base, with `/v1`. */
  readonly url: string;
  readonly calls: readonly HostedCall[];
  /** TCP connections that anybody has ever opened. */
  readonly connections: () => number;
  /** Those that are open now. */
  readonly open: () => number;
}

export type HostedPlay = (response: ServerResponse, call: HostedCall) => void;

/** The answer ` 1 2 3` in OpenAI's form, with an event for the usage when that is asked for, written with spaces. */
export const counting: HostedPlay = (response, {body}) => {
  response.writeHead(200, {'content-type': 'text/event-stream'});
  for (const content of [' 1', ' 2', ' 3']) response.write(sse({choices: [{index: 0, delta: {content}}]}));
  response.write(sse({choices: [{index: 0, delta: {}, finish_reason: 'stop'}], usage: null}));
  if (JSON.stringify(body['stream_options'] ?? {}).includes('"include_usage":true')) {
    response.write(
      'data: {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}}\n\n',
    );
  }
  response.end('data: [DONE]\n\n');
};

export function sse(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

/** Answers every request with the play until the test ends. */
export async function startHostedServer(
  t: Pick<ExecutionContext, 'teardown'>,
  play: HostedPlay = counting,
): Promise<HostedServer> {
  const calls: HostedCall[] = [];
  let connections = 0;
  let open = 0;
  const server = createServer((request, response) => {
    serve(request, response).catch(() => response.destroy()); // whoever asked is gone
  });
  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const call = await readCall(request);
    calls.push(call);
    play(response, call);
  }
  server.on('connection', socket => {
    connections += 1;
    open += 1;
    socket.on('close', () => (open -= 1));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {url: `http://127.0.0.1:${port}/v1`, calls, connections: () => connections, open: () => open};
}

async function readCall(request: IncomingMessage): Promise<HostedCall> {
  const text = Buffer.concat(await Array.fromAsync<Buffer>(request)).toString();
  const body: unknown = JSON.parse(text);
  if (typeof body !== 'object' || body === null) throw new Error('a body that is no object');
  return {path: request.url ?? '', headers: request.headers, body: Object.fromEntries(Object.entries(body))};
}
