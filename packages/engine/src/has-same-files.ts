import type {StoredModel} from '@hearsay/core';

/** Pure: whether what was loaded is still what the files hold. */
export function hasSameFiles(loaded: StoredModel, stored: StoredModel): boolean {
  return loaded.modifiedWallMs === stored.modifiedWallMs && loaded.files.join() === stored.files.join();
}
