import type {Exclusion} from './candidates.ts';

/** Why a node was not asked, as people are told. */
export const exclusionWords: Readonly<Record<Exclusion, string>> = {
  policy: 'the policy does not allow it',
  role: 'this node only serves, and asks no other (mesh.role)',
  'not authorized': 'the key of the application does not allow it',
  'not connected': 'this node has no connection to it',
  quarantined: 'it did not answer lately, or only with errors, and is left alone for a moment',
  stale: 'nothing was heard of it lately',
  draining: 'it is draining: it takes no new requests',
  battery: 'its battery is low and is kept for its owner',
  paused: 'its owner uses the machine: it takes no new requests',
  capability: 'its model cannot do what the request needs',
  artifact: 'it does not have the model',
  'too large': 'the model does not fit into its memory',
  tried: 'it was asked already',
  busy: 'it answered busy',
  'second copy': 'a second copy of the model would not pay',
};
