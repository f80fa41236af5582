import type {Fault} from '@hearsay/core';
import type {SlotReservation} from './slot-reservation.ts';

/** The reservations of one engine, until each is given back. */
export class Reservations extends Set<SlotReservation> {
  /** Requests that llama-server works on. */
  get running(): number {
    return [...this].filter(({isRunning}) => isRunning).length;
  }

  /** Somebody has not begun yet: the engine is needed. */
  get isAnyPending(): boolean {
    return [...this].some(({isPending}) => isPending);
  }

  failAll(fault: Fault): void {
    for (const reservation of this) reservation.fail(fault);
  }

  failPending(fault: Fault): void {
    for (const reservation of this) if (reservation.isPending) reservation.fail(fault);
  }
}
