export {isObject, parseObject} from '@hearsay/core';
export type {JsonObject} from '@hearsay/core';

/** A client may leave a field out or send null: it wants neither. */
export function isAbsent(value: unknown): boolean {
  return value === undefined || value === null;
}
