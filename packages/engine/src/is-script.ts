import {open} from 'node:fs/promises';

/** How programs begin that the system itself loads: on Linux, on Windows, and on macOS for one or more processors. */
const machineCode: RegExp = /^(?:\x7fELF|MZ|[\xce\xcf]\xfa\xed\xfe|\xca\xfe\xba\xbe)/u;

/** Whether a program is a text that something else runs (with `#!` or without), and so may start any other program. */
export async function isScript(file: string): Promise<boolean> {
  await using handle = await open(file);
  const {buffer, bytesRead} = await handle.read(Buffer.alloc(4), 0, 4, 0);
  return !machineCode.test(buffer.subarray(0, bytesRead).toString('latin1'));
}
