import {readFile} from 'node:fs/promises';
import {modelLibrary, programFiles} from './program-files.ts';

/** Tells whether an engine can run models of this architecture, as far as it can be known without trying. */
export type KnowsArchitecture = (architecture: string) => Promise<boolean>;

/** llama.cpp without its backends has some megabytes; what is larger is not read. */
const programBytesMax = 64 * 1024 * 1024;

/** Two names that every llama.cpp of the last years knows: where they are, all others are too. */
const landmarks = ['gemma2', 'deepseek2'] as const;

/**
 * Every llama.cpp holds the names of the architectures that it was built with, so it is asked itself: no list of ours
 * would know what tomorrow's version runs. Where these names are not found at all (a script that starts something
 * elsewhere, say), everything counts as known, and the engine says no when it tries.
 */
export function knownArchitectures(command: string): KnowsArchitecture {
  const answers = new Map<string, Promise<boolean>>();

  async function find(architecture: string): Promise<boolean> {
    for (const {path, sizeBytes} of await programFiles(command, modelLibrary)) {
      if (sizeBytes > programBytesMax) continue;
      const program = await readFile(path).catch(() => undefined);
      if (program !== undefined && landmarks.every(name => holds(program, name))) return holds(program, architecture);
    }
    return true;
  }

  return async architecture => {
    const known = answers.get(architecture) ?? find(architecture);
    answers.set(architecture, known);
    return known;
  };
}

/** Linkers share the ends of texts, so that only the end of one can be relied on. */
function holds(program: Buffer, name: string): boolean {
  return program.includes(`${name}\0`);
}
