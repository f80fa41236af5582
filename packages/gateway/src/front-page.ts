import type {IncomingMessage} from 'node:http';
import type {StatusReport} from '@hearsay/core';
import type {Route, RouteService} from './routes.ts';
import {visibleModels} from './visible-models.ts';

/** For people, and for the "test connection" buttons of clients: some of them look for Ollama's very words. */
export function frontPage({status, cluster}: RouteService): Route {
  return {
    method: 'GET',
    paths: ['/'],
    handle: async ({raw: request}, {raw}) => {
      const isPerson = prefersHtml(request);
      const text = isPerson
        ? page(
            status(),
            visibleModels(cluster, request).map(({name}) => name),
            request.headers.host ?? '',
          )
        : 'Ollama is running';
      raw.writeHead(200, {
        'content-type': `text/${isPerson ? 'html' : 'plain'}; charset=utf-8`,
        'content-length': Buffer.byteLength(text),
        vary: 'Accept',
      });
      raw.end(text);
    },
  };
}

/** Browsers name HTML; programs name JSON or take anything. */
function prefersHtml({headers}: IncomingMessage): boolean {
  return (headers.accept ?? '').startsWith('text/html');
}

function page({name, version, mesh, peers}: StatusReport, models: readonly string[], host: string): string {
  const url = `http://${host}`;
  const rows = [
    ['node', name],
    ['version', version],
    ['mesh', `${mesh}, with ${peers} other node${peers === 1 ? '' : 's'}`],
    ['models', models.join(', ') || 'none'],
    ['OpenAI base URL', `${url}/v1`],
    ['Ollama URL', url],
  ] as const;
  const list = rows.map(([term, value]) => `<dt>${term}</dt><dd>${escaped(value)}</dd>`).join('\n');
  return `<!doctype html>\n<meta charset="utf-8"><title>hearsay</title>\n<h1>hearsay is running</h1>\n<dl>\n${list}\n</dl>\n`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
