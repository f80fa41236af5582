import {decodeStatement} from '@hearsay/core';
import type {Checked, SignedStatement} from '@hearsay/core';
import {isStatementSigned} from './identity.ts';

/** What is signed by whom it says; undefined when it is not, or cannot be read. */
export function check(signed: SignedStatement): Checked | undefined {
  if (!isStatementSigned(signed)) return undefined;
  try {
    return {signer: signed.signer, statement: decodeStatement(signed.payload)};
  } catch {
    return undefined; // signed, and yet nothing that this version understands
  }
}

/** Undefined when any of them does not hold. */
export function checkAll(chain: readonly SignedStatement[]): readonly Checked[] | undefined {
  const checked = chain.map(check);
  return checked.every(one => one !== undefined) ? checked : undefined;
}
