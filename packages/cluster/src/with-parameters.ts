import {Fault, formFields, withFormFields} from '@hearsay/core';
import type {ClientRequest, Workload} from '@hearsay/core';

/** The body, JSON or a form, with a workload's defaults where it does not say otherwise itself. */
export function withParameters(
  {body, contentType}: Pick<ClientRequest, 'body' | 'contentType'>,
  parameters: Workload['parameters'],
): Uint8Array {
  if (Object.keys(parameters).length === 0 || body.length === 0) return body; // what is only looked at has none
  if (contentType !== undefined) return withDefaults(body, contentType, parameters);
  const asked: unknown = JSON.parse(new TextDecoder().decode(body));
  if (typeof asked !== 'object' || asked === null) throw new Fault('INTERNAL', 'a body that is no object was let in');
  return new TextEncoder().encode(JSON.stringify({...parameters, ...asked}));
}

/** A field of a form is a text: what is none is written as JSON is. */
function withDefaults(body: Uint8Array, contentType: string, parameters: Workload['parameters']): Uint8Array {
  const asked = formFields(body, contentType, Object.keys(parameters));
  const missing = Object.entries(parameters).filter(([name]) => !asked.has(name));
  const texts = missing.map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]);
  return missing.length === 0 ? body : withFormFields(body, contentType, Object.fromEntries(texts));
}
