/**
 * Turns arguments and a config file into a running node, and a running node into text. Hides argv, the terminal,
 * files of settings and the composition root. Other code may use only the real clock and chance, and the text of the
 * settings' manual.
 */
export {systemClock, systemRandom} from './system.ts';
export {configDocs} from './config-docs.ts';
