import {Fault} from '@hearsay/core';
import type {Workload} from '@hearsay/core';

/** The body with a workload's defaults where it does not say otherwise itself. */
export function withParameters(body: Uint8Array, parameters: Workload['parameters']): Uint8Array {
  if (Object.keys(parameters).length === 0) return body;
  const asked: unknown = JSON.parse(new TextDecoder().decode(body));
  if (typeof asked !== 'object' || asked === null) throw new Fault('INTERNAL', 'a body that is no object was let in');
  return new TextEncoder().encode(JSON.stringify({...parameters, ...asked}));
}
