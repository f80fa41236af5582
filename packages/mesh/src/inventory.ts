import type {Stream} from '@libp2p/interface';
import {inventoryBytesMax} from '@hearsay/core';
import type {Clock} from '@hearsay/core';
import {converse} from './conversation.ts';

export const inventoryProtocol = '/hearsay/inventory/1';

/** The largest inventory over a slow radio link, and a busy node. */
export const inventoryMsMax: number = 5000;

/** Reads one inventory, encoded as the peer made it. */
export async function fetchInventory(stream: Stream, clock: Clock, signal: AbortSignal): Promise<Uint8Array> {
  let inventory = new Uint8Array();
  // oxlint-disable-next-line require-yield -- The asking side has nothing to say; opening the stream is the question.
  const listen = async function* (next: () => Promise<Uint8Array>): AsyncGenerator<Uint8Array> {
    inventory = Uint8Array.from(await next());
  };
  await converse(stream, listen, {clock, frameBytesMax: inventoryBytesMax, msMax: inventoryMsMax, signal});
  return inventory;
}

export async function giveInventory(stream: Stream, inventory: Uint8Array, clock: Clock): Promise<void> {
  const tell = async function* (): AsyncGenerator<Uint8Array> {
    yield inventory;
  };
  await converse(stream, tell, {clock, frameBytesMax: inventoryBytesMax, msMax: inventoryMsMax});
}
