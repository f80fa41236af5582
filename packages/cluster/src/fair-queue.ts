import {Fault, timeLimit} from '@hearsay/core';
import type {Clock, Place, RequestId} from '@hearsay/core';

export interface QueueLimits {
  /** Requests that may wait here at the same time, of all clients and for all models. */
  readonly countMax: number;
  readonly bytesMax: number;
  /** How long one may wait here. */
  readonly waitMsMax: number;
}

/** Each waits with its body and its client's connection; beyond that nobody is served within a client's patience. */
export const queueLimits: QueueLimits = {countMax: 1000, bytesMax: 256 * 1024 * 1024, waitMsMax: 10 * 60_000};

/** One client alone may take this part of the places, so that there is always one for another. */
const clientShare = 0.5;

/** How often those who wait look around: a node may have come, or a slot be free where none of the turns stands. */
const lookEveryMs = 250;

/** So many lines look around at a time: each chooses among all nodes, and there may be a line for each request. */
const looksMax = 16;

/** A slot that is seen to be free may be gone, so that for such ones only so many times as many may stand in line. */
const seenFreeShare = 2;

/** What a request that waits would find now. */
export interface Room {
  /** As many of this node's requests may stand in line at workers as there are slots there. */
  readonly capacity: number;
  /** There is a slot that it would have at once. */
  readonly isFree: boolean;
}

/** A request that all candidates are too busy for. */
export interface Waiter extends Pick<Room, 'capacity'> {
  readonly request: RequestId;
  /** Whoever has the same is served in turn with the others, not once for each request. */
  readonly client: string;
  readonly bytes: number;
  /** How long a request keeps a slot, as far as one knows. */
  readonly holdMs: number;
  /** Looks around again; absent: only turns that end make room. */
  readonly look?: (() => Room) | undefined;
}

/** The right to stand in line at a worker, until disposed. */
export interface Turn extends Disposable {
  /** As the candidates are now. */
  readonly allow: (capacity: number) => void;
}

interface Waiting extends Waiter {
  readonly grant: () => void;
}

/** The requests for one set of models. */
interface Line {
  /** Whose turn it is next comes first. */
  readonly clients: Map<string, Waiting[]>;
  capacity: number;
  /** Turns that are given and not over. */
  given: number;
}

/**
 * Who of this node's clients is next when every candidate is busy: clients in turn, each client's requests in their
 * order. Workers keep a line of their own, first come first served; so that it stays short, only as many of this node's
 * requests stand in it as there are slots, and the rest waits here. No slot is idle for that: whenever one becomes
 * free, a request stands in line for it. The worker still has the last word (law 4).
 */
export class FairQueue {
  readonly #limits: QueueLimits;
  readonly #clock: Clock;
  readonly #lines = new Map<string, Line>();
  readonly #waiting = new Map<RequestId, {readonly line: Line; readonly waiting: Waiting}>();
  readonly #bytesOf = new Map<string, number>();
  #bytes = 0;
  #nextLook: Disposable | undefined;

  constructor(limits: QueueLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /** Others wait for the same, so that nobody may pass them by. */
  isCrowded(name: string): boolean {
    return (this.#lines.get(name)?.clients.size ?? 0) > 0;
  }

  /** Undefined: it does not wait here. */
  placeOf(request: RequestId): Place | undefined {
    const found = this.#waiting.get(request);
    if (found === undefined) return undefined;
    const position = positionIn(found.line, found.waiting);
    return {position, waitMs: waitMsAt(position, found.line.capacity, found.waiting.holdMs)};
  }

  /**
   * Resolves when it is this request's turn, at once where nobody waits and there is room; `waits` hears of the place
   * otherwise. Throws OVERLOADED when there is no place to wait, or when the wait was too long.
   */
  async turn(name: string, waiter: Waiter, waits: (place: Place) => void, signal: AbortSignal): Promise<Turn> {
    const line = this.#lineOf(name);
    line.capacity = Math.max(1, waiter.capacity);
    const turn = this.#turnIn(name, line);
    if (line.clients.size === 0 && line.given < line.capacity) {
      line.given += 1;
      return turn;
    }
    await this.#wait(name, line, waiter, {waits, signal});
    return turn;
  }

  async #wait(
    name: string,
    line: Line,
    waiter: Waiter,
    {waits, signal}: {readonly waits: (place: Place) => void; readonly signal: AbortSignal},
  ): Promise<void> {
    this.#serve(line); // it may have told of more room
    this.#refuseIfFull(line, waiter);
    const {promise, resolve, reject} = Promise.withResolvers<void>();
    const waiting: Waiting = {...waiter, grant: resolve};
    this.#add(line, waiting);
    using limit = timeLimit(this.#clock, this.#limits.waitMsMax, 'a turn', signal);
    const give = (): void => reject(limit.signal.reason);
    limit.signal.addEventListener('abort', give, {once: true});
    if (limit.signal.aborted) give();
    try {
      this.#serve(line);
      const place = this.placeOf(waiter.request);
      if (place !== undefined) waits(place);
      await promise;
    } catch (error) {
      if (!this.#remove(line, waiting)) this.#end(name, line); // its turn had come in the same moment
      this.#forgetIfEmpty(name, line);
      if (signal.aborted || !limit.signal.aborted) throw error;
      throw overloaded('it has waited too long for its turn', line, waiter);
    } finally {
      limit.signal.removeEventListener('abort', give);
    }
  }

  #refuseIfFull(line: Line, waiter: Waiter): void {
    const {countMax, bytesMax} = this.#limits;
    const {bytes, client} = waiter;
    const own = this.#waitingOf(client);
    const isFull = this.#waiting.size >= countMax || this.#bytes + bytes > bytesMax;
    if (isFull) throw overloaded('too many requests wait for a slot', line, waiter);
    if (own.count >= clientShare * countMax || own.bytes + bytes > clientShare * bytesMax) {
      throw overloaded('too many requests of this client wait for a slot', line, waiter);
    }
  }

  #waitingOf(client: string): {readonly count: number; readonly bytes: number} {
    let count = 0;
    for (const {clients} of this.#lines.values()) count += clients.get(client)?.length ?? 0;
    return {count, bytes: this.#bytesOf.get(client) ?? 0};
  }

  #add(line: Line, waiting: Waiting): void {
    const {client, request} = waiting;
    const own = line.clients.get(client) ?? [];
    own.push(waiting);
    line.clients.set(client, own);
    this.#waiting.set(request, {line, waiting});
    this.#count(waiting, 1);
    this.#lookLater();
  }

  /** False when it does not wait any more. */
  #remove({clients}: Line, waiting: Waiting): boolean {
    const {client, request} = waiting;
    if (this.#waiting.get(request)?.waiting !== waiting) return false;
    const rest = (clients.get(client) ?? []).filter(other => other !== waiting);
    if (rest.length > 0) clients.set(client, rest);
    else clients.delete(client);
    this.#waiting.delete(request);
    this.#count(waiting, -1);
    return true;
  }

  #count({bytes, client}: Waiting, sign: 1 | -1): void {
    const own = (this.#bytesOf.get(client) ?? 0) + sign * bytes;
    this.#bytes += sign * bytes;
    if (own > 0) this.#bytesOf.set(client, own);
    else this.#bytesOf.delete(client);
  }

  #allow(line: Line, capacity: number): void {
    line.capacity = Math.max(1, capacity);
    this.#serve(line);
  }

  #serve(line: Line): void {
    while (line.given < line.capacity) {
      const first = firstIn(line);
      if (first === undefined) return;
      this.#grant(line, first);
    }
  }

  #grant(line: Line, first: Waiting): void {
    const {client} = first;
    this.#remove(line, first);
    const rest = line.clients.get(client);
    line.clients.delete(client); // to the end: the others come first now
    if (rest !== undefined) line.clients.set(client, rest);
    line.given += 1;
    first.grant();
  }

  #lookLater(): void {
    if (this.#nextLook !== undefined) return;
    this.#nextLook = this.#clock.after(lookEveryMs, () => {
      this.#nextLook = undefined;
      const waiting = [...this.#lines].filter(([, {clients}]) => clients.size > 0);
      for (const [name, line] of waiting.slice(0, looksMax)) {
        this.#lines.delete(name); // to the end: the others come first now
        this.#lines.set(name, line);
        this.#look(line);
      }
      if (this.#waiting.size > 0) this.#lookLater();
    });
  }

  /** Turns end only when a request has begun, which may be long after there was room for another. */
  #look(line: Line): void {
    const first = firstIn(line);
    const room = first?.look?.();
    if (first === undefined || room === undefined) return;
    this.#allow(line, room.capacity);
    const mayPass = room.isFree && line.given < seenFreeShare * line.capacity;
    if (mayPass && firstIn(line) === first) this.#grant(line, first);
  }

  #turnIn(name: string, line: Line): Turn {
    let isOver = false;
    return {
      allow: capacity => this.#allow(line, capacity),
      [Symbol.dispose]: () => {
        if (isOver) return;
        isOver = true;
        this.#end(name, line);
      },
    };
  }

  #end(name: string, line: Line): void {
    line.given -= 1;
    this.#serve(line);
    this.#forgetIfEmpty(name, line);
  }

  #lineOf(name: string): Line {
    const line = this.#lines.get(name) ?? {clients: new Map(), capacity: 1, given: 0};
    this.#lines.set(name, line);
    return line;
  }

  #forgetIfEmpty(name: string, line: Line): void {
    if (line.given === 0 && line.clients.size === 0 && this.#lines.get(name) === line) this.#lines.delete(name);
  }
}

/** Whose turn it is next. */
function firstIn({clients}: Line): Waiting | undefined {
  const [requests] = clients.values();
  return requests?.[0];
}

/** How many are served before it, and itself: one of each client a round, those before its own in this round too. */
function positionIn({clients}: Line, waiting: Waiting): number {
  const rounds = clients.get(waiting.client)?.indexOf(waiting) ?? 0;
  let ahead = rounds;
  let isBefore = true;
  for (const [client, requests] of clients) {
    if (client === waiting.client) isBefore = false;
    else ahead += Math.min(requests.length, rounds + (isBefore ? 1 : 0));
  }
  return ahead + 1;
}

function waitMsAt(position: number, capacity: number, holdMs: number): number {
  return Math.round((position * holdMs) / capacity);
}

/** The wait is that of somebody who came now. */
function overloaded(why: string, line: Line, {holdMs}: Waiter): Fault {
  let count = 0;
  for (const requests of line.clients.values()) count += requests.length;
  const retryAfterMs = waitMsAt(count + 1, line.capacity, holdMs);
  return new Fault('OVERLOADED', `every node is busy, and ${why}`, {details: {retryAfterMs}});
}
