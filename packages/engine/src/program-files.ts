import {readdir, realpath, stat} from 'node:fs/promises';
import {dirname, join} from 'node:path';

/** A file that a llama-server consists of. While all of it is the same, so are its bytes. */
export interface ProgramFile {
  readonly path: string;
  readonly sizeBytes: number;
  readonly mtimeMs: number;
  /** Changes with the bytes even where a tool sets the other time back. */
  readonly ctimeMs: number;
  readonly inode: number;
}

/** The libraries of llama.cpp that know about models. */
export const modelLibrary: RegExp = /^(?:lib)?llama\b.*\.(?:so|dylib|dll)\b/u;

/** All libraries of llama.cpp: without one of them the program may not even start. */
export const anyLibrary: RegExp = /^(?:lib)?(?:llama|ggml|mtmd)\b.*\.(?:so|dylib|dll)\b/u;

/** The libraries that a llama-server may be linked with, beside it or in the `lib` beside its `bin`, then itself. */
export async function programFiles(command: string, library: RegExp): Promise<readonly ProgramFile[]> {
  const program = await realpath(command).catch(() => command);
  const folders = [dirname(program), join(dirname(program), '..', 'lib')];
  const libraries = await Promise.all(
    folders.map(async folder => {
      const names = await readdir(folder).catch(() => []);
      return names.filter(name => library.test(name)).map(name => join(folder, name));
    }),
  );
  const files = await Promise.all([...libraries.flat(), program].map(fileAt));
  return files.filter(file => file !== undefined);
}

async function fileAt(path: string): Promise<ProgramFile | undefined> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isFile() !== true) return undefined;
  return {path, sizeBytes: found.size, mtimeMs: found.mtimeMs, ctimeMs: found.ctimeMs, inode: found.ino};
}
