import {join} from 'node:path';

/** The toy that ships with hearsay, so that a first chat needs no download. */
export const demoModelPath: string = join(import.meta.dirname, '..', 'assets', 'hearsay-demo-Q8_0.gguf');
