import {writeFile} from 'node:fs/promises';
import {join} from 'node:path';
import {configDocs} from '@hearsay/cli';

/** Writes the manual of all settings. A test checks that it is current. */
await writeFile(join(import.meta.dirname, '..', 'docs', 'configuration.md'), configDocs());
