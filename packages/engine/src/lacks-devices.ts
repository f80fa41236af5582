import {readdir, realpath} from 'node:fs/promises';
import {dirname} from 'node:path';
import {isScript} from './is-script.ts';

/** `libggml-cpu-haswell.so`: part of a llama.cpp, or a backend that it loads when it starts. */
const part: RegExp = /^libggml-(?<kind>[a-z0-9]+)(?<variant>-[a-z0-9_]+)?\.so(?:\.|$)/u;

/** Parts that bring no device: what all backends share, processors, and the wire to machines named in an argument. */
const plainKinds: readonly string[] = ['base', 'cpu', 'rpc'];

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
  if (process.platform !== 'linux' || variables['GGML_BACKEND_PATH']) return false;
  try {
    const program = await realpath(command);
    const [beside, here] = await Promise.all([partsIn(dirname(program)), partsIn('.')]);
    const hasVariants = beside.some(({kind, variant}) => kind === 'cpu' && variant !== undefined);
    if (!hasVariants || ![...beside, ...here].every(({kind}) => plainKinds.includes(kind))) return false;
    return !(await isScript(program)); // which may start a program elsewhere
  } catch {
    return false; // what the matter is, llama-server says when it is asked
  }
}

interface Part {
  readonly kind: string;
  readonly variant: string | undefined;
}

async function partsIn(folder: string): Promise<readonly Part[]> {
  return (await readdir(folder)).flatMap(name => {
    const {kind, variant} = part.exec(name)?.groups ?? {};
    return kind === undefined ? [] : [{kind, variant}];
  });
}
