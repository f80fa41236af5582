import type {LogPage} from './control.ts';
import type {StoredModel} from './model.ts';
import type {HardwareFacts, MemoryFacts} from './record.ts';
import type {Busy, Endpoint, Refusal, WorkResponse} from './work.ts';

/** States of one engine; see `engine-state.ts`. */
export type EngineStateName = 'stopped' | 'starting' | 'ready' | 'draining' | 'stopping' | 'backing off' | 'broken';

/** One engine for display and for the beat: advisory, never to decide from. */
export interface EngineSnapshot {
  /** The stored model's key. */
  readonly key: string;
  readonly model: StoredModel;
  readonly state: EngineStateName;
  readonly slots: number;
  readonly busy: number;
  readonly queued: number;
  readonly waitMs: number;
  /** Context of one slot in tokens. */
  readonly context: number;
  /** How long its last load took; an assumption before the first. */
  readonly loadMs?: number | undefined;
  /** When it became ready, on the wall clock; undefined while it is not. */
  readonly readySinceWallMs: number | undefined;
  /** How long it stays without requests; Infinity: for ever; undefined: busy or not ready. */
  readonly unloadInMs: number | undefined;
  /** Why it is broken or backing off: the last lines llama-server wrote. */
  readonly failure: string | undefined;
  readonly processId: number | undefined;
  /** What runs it, for people; default: llama-server. */
  readonly processor?: string;
  /** While it loads: share of the file that is read (0…1), where llama-server tells, and the time that is left. */
  readonly loading?: {readonly share: number | undefined; readonly remainingMs: number} | undefined;
}

export interface ReserveOptions {
  /** Take a place in the line when no slot is free. */
  readonly force: boolean;
  /** The request needs the engine and no slot of it; see `needsSlot`. */
  readonly beside?: boolean;
  /** How long the engine stays afterwards, as the request asks; the owner's limits win. */
  readonly keepAliveMs?: number | undefined;
  /** Context that the request would like for its slot, in tokens; given where it costs nobody anything (R106). */
  readonly contextTokens?: number | undefined;
}

/** How an engine should be loaded. What is undefined stays as the owner has set it. */
export interface LoadWish {
  /** Context of one slot, in tokens. */
  readonly context: number | undefined;
  readonly slots: number | undefined;
  /** Stays loaded, and is started again when it crashes, until somebody stops it. */
  readonly keep: boolean;
}

/** What is sent to an engine. */
export interface EngineCall {
  readonly endpoint: Endpoint;
  readonly body: Uint8Array;
  /** JSON unless given. */
  readonly contentType?: string | undefined;
}

/** A slot of an engine on this machine. */
export interface Reservation extends AsyncDisposable {
  readonly kind: 'accepted';
  /** As `Lease.run`. */
  run(call: EngineCall, signal: AbortSignal): Promise<WorkResponse>;
}

/** Keeps llama-server processes on this machine and lends their slots. */
export interface EngineHost extends AsyncDisposable {
  /** Checks and takes in one synchronous step, so that the answer cannot go stale in between (law 4). */
  reserve(model: StoredModel, options: ReserveOptions): Reservation | Busy | Refusal;
  /** Starts an engine that nobody has asked for yet; one that runs otherwise than wished is drained and replaced. */
  load(model: StoredModel, wish: LoadWish): Refusal | undefined;
  /** What an engine has written, also after its end; empty when it was never started. */
  logs(key: string, after: number): LogPage;
  engines(): readonly EngineSnapshot[];
  /**
   * Ends the engine after its running requests, or after the drain limit; resolves when the process is gone. Requests
   * that have not begun to run fail; later ones may start it again.
   */
  stop(key: string): Promise<void>;
  memory(): MemoryFacts;
  /** How fast machines of this kind are; undefined: nobody can tell. Changes when drivers have woken. */
  hardware(): HardwareFacts | undefined;
  /** Grows with every change of load. */
  loadSeq(): number;
  /** Calls back after every change that `engines()` shows, until disposed. */
  onChange(listener: () => void): Disposable;
  /** Where the engine comes from, for people: `llama-server 0.5.0 (installed)`. */
  describe(): string;
}
