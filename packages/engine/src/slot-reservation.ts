import {Fault, untilAborted} from '@hearsay/core';
import type {Busy, EngineCall, Refusal, Reservation, WorkResponse} from '@hearsay/core';
import type {Call} from './llama-client.ts';
import type {Slot} from './slots.ts';

/** Made once: every request ends with it, and a stack trace each time would cost more than the rest of the ending. */
const givenBack = new Fault('CANCELLED', 'the slot was given back before its request had ended');

/** Where requests are sent. */
export interface EngineDoor {
  call(call: EngineCall, signal: AbortSignal): Call;
}

/** What a reservation needs of the engine it belongs to. */
export interface SlotOwner {
  /** Waits until the engine is ready; starts it when it is stopped. Throws ENGINE_FAILED when it is broken. */
  ready(signal: AbortSignal): Promise<EngineDoor>;
  /** `wasCut`: its request was sent and did not end by itself, so llama-server may still work on it. */
  giveBack(reservation: SlotReservation, wasCut: boolean): Promise<void>;
}

/** What whoever asks for a slot is answered. */
export type Reserved = SlotReservation | Busy | Refusal;

/** A slot, or a place in the line for one, from `reserve` until it is disposed. */
export class SlotReservation implements Reservation {
  readonly kind = 'accepted';
  readonly slot: Slot;
  readonly #owner: SlotOwner;
  readonly #end = new AbortController();
  #isUsed = false;
  #call: Call | undefined;
  #disposal: Promise<void> | undefined;
  #unwatch = (): void => undefined;

  constructor(slot: Slot, owner: SlotOwner) {
    this.slot = slot;
    this.#owner = owner;
  }

  /** True until its request was sent or given up: the engine is needed for it. */
  get isPending(): boolean {
    return this.#call === undefined && !this.#end.signal.aborted;
  }

  /** True while llama-server works on its request. */
  get isRunning(): boolean {
    return this.#call?.state() === 'running';
  }

  async run(call: EngineCall, signal: AbortSignal): Promise<WorkResponse> {
    if (this.#isUsed) throw new Fault('INTERNAL', 'a reservation runs one request only');
    this.#isUsed = true;
    const {signal: end} = this.#end;
    const pass = (): void => this.#end.abort(signal.reason);
    signal.addEventListener('abort', pass, {once: true});
    this.#unwatch = () => signal.removeEventListener('abort', pass);
    if (signal.aborted) pass();
    await untilAborted(this.slot.granted, end);
    const server = await this.#owner.ready(end);
    end.throwIfAborted();
    this.#call = server.call(call, end);
    return this.#call.response;
  }

  /** Ends what it waits for or runs with this fault. The slot stays taken until it is disposed. */
  fail(fault: Fault): void {
    this.#end.abort(fault);
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#disposal ??= this.#dispose();
    return this.#disposal;
  }

  /** The slot is free only when the socket is closed: that is what tells llama-server to stop. */
  async #dispose(): Promise<void> {
    if (this.#call?.isOver() !== true) this.fail(givenBack);
    await this.#call?.closed();
    this.#unwatch();
    await this.#owner.giveBack(this, this.#call !== undefined && this.#call.state() !== 'whole');
  }
}
