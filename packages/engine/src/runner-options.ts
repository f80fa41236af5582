import type {EnginePolicy, KeepAliveLimits, LoadedFacts, StoredModel} from '@hearsay/core';
import type {EngineSettings} from './engine-arguments.ts';
import type {LaunchSettings} from './llama-server.ts';
import type {LoadTimes} from './load-times.ts';
import type {WatchPolicy} from './server-watch.ts';

/** What one engine's runner is given by its host. */
export interface RunnerOptions {
  readonly launch: LaunchSettings;
  readonly settings: EngineSettings;
  readonly policy: EnginePolicy;
  readonly keepAlive: KeepAliveLimits;
  readonly watch: WatchPolicy;
  readonly loadTimes: LoadTimes;
  /** An engine is ready and says what it has loaded. */
  readonly loaded: (model: StoredModel, told: LoadedFacts) => void;
  /** After everything that the snapshot shows. */
  readonly changed: () => void;
}
