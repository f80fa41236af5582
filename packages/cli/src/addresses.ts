import {isIPv6} from 'node:net';
import {Fault} from '@hearsay/core';

export const defaultGatewayPort: number = 4327;
export const defaultMeshPort: number = 4328;

/** Where clients look for Ollama unless they are told otherwise. */
export const ollamaPort = 11_434;

interface HostAndPort {
  readonly host: string | undefined;
  readonly port: number | undefined;
}

/**
 * The daemon's URL as people name it: `host`, `:port`, `host:port`, `[::1]:port` or a URL with a prefix, without a
 * slash at the end. An address that means "every interface" becomes loopback, since nobody can connect to it.
 */
export function parseDaemonUrl(text: string): string {
  const trimmed = text.trim();
  if (/^https?:\/\//iu.test(trimmed)) {
    const url = URL.parse(trimmed);
    if (url === null) throw unusable(text);
    url.hostname = connectable(url.hostname);
    return `${url.origin}${url.pathname}`.replace(/\/+$/u, '');
  }
  const {host = '127.0.0.1', port = defaultGatewayPort} = splitHostAndPort(trimmed) ?? refuse(text);
  const url = URL.parse(`http://${bracketed(connectable(host))}:${port}`);
  if (url === null) throw unusable(text);
  return url.origin;
}

/** Where to listen: `host:port`, `:port`, `port`, `host`, `[::1]:port`. Undefined when the text is none of them. */
export function parseListen(text: string): HostAndPort | undefined {
  const trimmed = text.trim();
  return splitHostAndPort(/^\d+$/u.test(trimmed) ? `:${trimmed}` : trimmed);
}

function bracketed(host: string): string {
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
}

function splitHostAndPort(text: string): HostAndPort | undefined {
  if (text === '') return undefined;
  if (isIPv6(text)) return {host: text, port: undefined};
  const match =
    /^\[(?<v6>[^\]]+)\](?::(?<port>\d+))?$/u.exec(text) ?? /^(?<host>[^\s:/@?#[\]]*)(?::(?<port>\d+))?$/u.exec(text);
  const {v6, host, port} = match?.groups ?? {};
  if (match === null || (v6 !== undefined && !isIPv6(v6)) || Number(port ?? 0) > 65_535) return undefined;
  return {host: v6 ?? (host || undefined), port: port === undefined ? undefined : Number(port)};
}

function connectable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  return host === '::' || host === '[::]' ? '[::1]' : host;
}

function unusable(text: string): Fault {
  return new Fault('BAD_CONFIG', `cannot use "${text}" as a daemon's address; write host, :port, host:port or a URL`);
}

function refuse(text: string): never {
  throw unusable(text);
}
