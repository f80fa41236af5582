import {modelFacts} from './setting-facts-of-models.ts';
import {nodeFacts} from './setting-facts-of-node.ts';
import {routingFacts} from './setting-facts-of-routing.ts';
import type {SettingKey} from './settings.ts';

export interface SettingFacts {
  /** Environment variable. */
  readonly variable: string;
  /** Flag of `hearsay serve`, for the manual. */
  readonly flag: string | undefined;
  /** What holds when nobody gives it, for the manual. */
  readonly otherwise: string;
  /** A value as it could stand in the file, in TOML. */
  readonly example: string;
  /** For the manual: what it is for, in sentences. */
  readonly about: string;
}

/** What the manual says of every setting. */
export const settingFacts: Readonly<Record<SettingKey, SettingFacts>> = {
  ...nodeFacts,
  ...routingFacts,
  ...modelFacts,
};
