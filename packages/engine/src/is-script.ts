import {open} from 'node:fs/promises';

/** Whether a program is a text that something else runs, and so may start any other program. */
export async function isScript(file: string): Promise<boolean> {
  await using handle = await open(file);
  const {buffer, bytesRead} = await handle.read(Buffer.alloc(2), 0, 2, 0);
  return buffer.subarray(0, bytesRead).toString('latin1') === '#!';
}
