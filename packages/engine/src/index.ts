/**
 * Keeps llama-server processes on this machine and lends their slots. It hides where llama-server comes from and how
 * it is installed, its arguments, ports, keys and exit codes, and how a process is started, watched, stopped and
 * never left behind.
 */
export {installedEngines} from './engine-store.ts';
export {engineVersion, findEngine} from './find-engine.ts';
export type {Engine} from './find-engine.ts';
export {formatProgress, installEngine} from './install-engine.ts';
export type {InstallProgress} from './install-engine.ts';
export {startExternalEngines} from './start-external-engines.ts';
export type {ExternalEngineConfig} from './external-engine.ts';
export {startHosted} from './start-hosted.ts';
export type {HostedConfig} from './hosted-worker.ts';
export {startEngineHost} from './start-engine-host.ts';
export type {EngineHostConfig} from './start-engine-host.ts';
export {startMachineWatch} from './start-machine-watch.ts';
export type {MachineWatchConfig} from './start-machine-watch.ts';
export {knownArchitectures} from './known-architectures.ts';
export {knownVersion} from './known-version.ts';
export {livingEngines} from './pid-files.ts';
