import {open, readdir, realpath} from 'node:fs/promises';
import {dirname} from 'node:path';

/** Parts that bring no device: what all backends share, processors, and the wire to machines named in an argument. */
const plainPart: RegExp = /^libggml-(?:base|cpu(?:-[a-z0-9_.]+)?|rpc)\.so(?:\.\d|$)/u;

/** `libggml-cpu-haswell.so`: the code for one kind of processor in a file of its own. */
const processorPart: RegExp = /^libggml-cpu-[a-z0-9_.]+\.so$/u;

/** `libggml.so.0`: what loads the parts. */
const loader: RegExp = /^libggml\.(?:.*\.)?so(?:\.|$)/u;

/** Variables by which other backends come in, or other libraries that hold them. */
const elsewhere = ['GGML_BACKEND_PATH', 'LD_LIBRARY_PATH', 'LD_PRELOAD'] as const;

/**
 * True if this llama-server cannot have a device on any machine, so that there is nothing to ask it. One that has its
 * code for kinds of processors in files of their own was built to load every backend from a file: from beside the
 * program, from the current folder, or from where a variable says. All other builds may hold a backend that shows in
 * no name, or read another folder; they are to be asked, and so is every system where this has not been tried.
 */
export async function lacksDevices(
  command: string,
  variables: Readonly<Record<string, string | undefined>>,
): Promise<boolean> {
  if (process.platform !== 'linux' || elsewhere.some(name => variables[name])) return false;
  try {
    const program = await realpath(command);
    const [beside, here] = await Promise.all([readdir(dirname(program)), readdir('.')]);
    const parts = [...beside, ...here].filter(name => name.startsWith('libggml-'));
    if (!parts.every(name => plainPart.test(name)) || !beside.some(name => processorPart.test(name))) return false;
    return await isLinkedWith(
      program,
      beside.filter(name => loader.test(name)),
    );
  } catch {
    return false; // what the matter is, llama-server says when it is asked
  }
}

/** Linkers write the names of the libraries in front of the code; where they come later, the engine is asked. */
const headBytes = 1024 * 1024;

/**
 * Whether a program takes one of these libraries from its own folder. A script, a program that was linked statically,
 * or one that looks for libraries elsewhere has nothing to do with the parts that happen to lie beside it.
 */
async function isLinkedWith(program: string, libraries: readonly string[]): Promise<boolean> {
  await using handle = await open(program);
  const {buffer, bytesRead} = await handle.read(Buffer.alloc(headBytes), 0, headBytes, 0);
  const head = buffer.subarray(0, bytesRead);
  const holds = (text: string): boolean => head.includes(text);
  return (
    head.toString('latin1', 0, 4) === '\x7fELF' && holds('\0$ORIGIN\0') && libraries.some(name => holds(`\0${name}\0`))
  );
}
