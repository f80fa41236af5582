import {rename, rm, writeFile} from 'node:fs/promises';

/** Writes a file so that readers see the old one or the new one, never half of it, even after a power cut. */
export async function writeWhole(path: string, text: string): Promise<void> {
  const unfinished = `${path}.${process.pid}.part`;
  try {
    await writeFile(unfinished, text, {flush: true, mode: 0o600});
    await rename(unfinished, path);
  } catch (error) {
    await rm(unfinished, {force: true});
    throw error;
  }
}
