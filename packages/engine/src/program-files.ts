import {readdir, realpath, stat} from 'node:fs/promises';
import {dirname, join} from 'node:path';

/** A file that a llama-server consists of. While all of it is the same, so are its bytes. */
export interface ProgramFile {
  readonly path: string;
  readonly sizeBytes: number;
  readonly mtimeMs: number;
  readonly inode: number;
}

/** The libraries that a llama-server may be linked with, beside it or in the `lib` beside its `bin`, then itself. */
export async function programFiles(command: string): Promise<readonly ProgramFile[]> {
  const program = await realpath(command).catch(() => command);
  const folders = [dirname(program), join(dirname(program), '..', 'lib')];
  const libraries = await Promise.all(
    folders.map(async folder => {
      const names = await readdir(folder).catch(() => []);
      return names.filter(name => /^(?:lib)?llama\b.*\.(?:so|dylib|dll)\b/u.test(name)).map(name => join(folder, name));
    }),
  );
  const files: ProgramFile[] = [];
  for (const path of [...libraries.flat(), program]) {
    const found = await stat(path).catch(() => undefined);
    if (found?.isFile() !== true) continue;
    files.push({path, sizeBytes: found.size, mtimeMs: found.mtimeMs, inode: found.ino});
  }
  return files;
}
