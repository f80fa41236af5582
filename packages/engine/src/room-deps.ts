import type {EngineStateName, Environment} from '@hearsay/core';
import type {MemoryProbe} from './memory-probe.ts';
import type {ModelNeeds} from './model-needs.ts';

/** An engine of this machine as the keeper of its memory sees it. */
export interface Tenant {
  readonly key: string;
  readonly state: EngineStateName;
  /** Somebody holds or waits for a slot of it, whether the request has begun or not (R93). */
  readonly isUsed: boolean;
  /** Its owner wants it to stay. */
  readonly isKept: boolean;
  readonly loadMs: number;
  readonly waitMs: number;
  readonly processId: number | undefined;
}

export interface RoomDeps extends Environment {
  readonly probe: MemoryProbe;
  readonly needs: ModelNeeds;
  /** What all engines together may take; undefined: what the machine has. */
  readonly budgetBytes: number | undefined;
  readonly tenants: () => readonly Tenant[];
  /** Ends an idle engine; resolves when its process is gone. */
  readonly evict: (key: string) => Promise<void>;
}
