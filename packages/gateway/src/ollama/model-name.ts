import {nameLengthMax} from '@hearsay/core';

/** Pure: the name as Ollama lists it, always with a tag: the last colon after the last slash begins one. */
export function tagged(name: string): string {
  return name.lastIndexOf(':') > name.lastIndexOf('/') ? name : `${name}:latest`;
}

/** Pure: under what a name is kept and compared (C55). */
export function nameKey(name: string): string {
  return tagged(name.trim().toLowerCase());
}

/** Pure: whether a new name may be that: `[host/][namespace/]model[:tag]`. */
export function isModelName(name: string): boolean {
  return name.length <= nameLengthMax && /^(?:\w[\w.:-]*\/)?(?:\w[\w.-]*\/)*\w[\w.-]*(?::\w[\w.-]*)?$/u.test(name);
}
