import {rename, writeFile} from 'node:fs/promises';

/** What a daemon leaves beside a file when it is killed while it writes it anew. */
export const unfinishedEnding = '.new';

/** Writes a file so that readers see the old one or the new one, never half of it. Only the owner may read it. */
export async function writeWhole(path: string, text: string): Promise<void> {
  await writeFile(path + unfinishedEnding, text, {mode: 0o600});
  await rename(path + unfinishedEnding, path);
}
