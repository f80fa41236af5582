import {Fault} from './fault.ts';
import type {Policy} from './policy.ts';

/** What an application may ask for. A list that is absent allows everything. */
export interface Rights {
  /** Names of models, with `*` for any characters. */
  readonly models: readonly string[] | undefined;
  readonly workloads: readonly string[] | undefined;
  /** Nodes that may run its requests, as people name them. */
  readonly nodes: readonly string[] | undefined;
  /** Kinds of placement that a request of it may ask for by itself: `auto`, `prefer`, `pin`. */
  readonly policies: readonly string[] | undefined;
}

/** The application behind a request, as its key says. Travels with the offer, so that the worker can check again. */
export interface Caller {
  /** Name of the key. */
  readonly name: string;
  readonly rights: Rights;
  /** What holds for its requests unless they say otherwise. */
  readonly policy: Policy | undefined;
}

/** Pure: whether one of the names is allowed. No list allows everything. */
export function allows(patterns: readonly string[] | undefined, names: readonly string[]): boolean {
  return patterns === undefined || names.some(name => patterns.some(pattern => matchesPattern(pattern, name)));
}

/** Pure: compares without case; `*` stands for any characters. */
export function matchesPattern(pattern: string, name: string): boolean {
  const [first = '', ...rest] = pattern.toLowerCase().split('*');
  const text = name.toLowerCase();
  if (rest.length === 0) return text === first;
  if (!text.startsWith(first)) return false;
  const last = rest.pop() ?? '';
  let at = first.length;
  for (const piece of rest) {
    const found = text.indexOf(piece, at);
    if (found < 0) return false;
    at = found + piece.length;
  }
  return text.length - last.length >= at && text.endsWith(last);
}

/** A request without the right that it needs. */
export function lacksRight(caller: Caller, right: string): Fault {
  return new Fault('FORBIDDEN', `the key ${caller.name} lacks a right that this request needs: ${right}`, {
    details: {right, retryable: false},
  });
}
