import type {IncomingMessage, ServerResponse} from 'node:http';
import type {ErrorForm} from './error-form.ts';

/** One header of a request; the first when it was sent more than once. */
export function headerOf(request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value[0] : value;
}

/** As sent: Fastify sees none, because it would refuse some (C64). */
export function contentTypeOf({rawHeaders}: IncomingMessage): string | undefined {
  const at = rawHeaders.findIndex((text, index) => index % 2 === 0 && text.toLowerCase() === 'content-type');
  return at < 0 ? undefined : rawHeaders[at + 1];
}

/** Names the request to its client: by the client's own id, when that may stand in a header and a log. */
export function nameRequest(request: IncomingMessage, response: ServerResponse, form: ErrorForm, id: string): void {
  const own = headerOf(request, 'x-request-id');
  const shown = own !== undefined && /^[\w.-]{1,128}$/u.test(own) ? own : id;
  response.setHeader('x-request-id', shown);
  if (form.idHeader !== 'x-request-id') response.setHeader(form.idHeader, shown);
}
