import {describeError, Fault, isNamed, shortNode} from '@hearsay/core';
import type {Candidate, ControlAnswer, ControlCommand, ControlOutcome, ControlRequest, Digest} from '@hearsay/core';
import type {Mesh, Ranked} from '@hearsay/core';
import {controlHere} from './control-here.ts';
import type {ControlDeps} from './control-here.ts';

export interface ControlMeshDeps extends ControlDeps {
  readonly mesh: Mesh;
  /** Every node, the best for a request for one of these digests first. */
  readonly rank: (digests: readonly Digest[]) => readonly Ranked[];
}

/** Passes a wish on to the nodes that it concerns, all at once. What one of them says against it is its outcome. */
export async function controlMesh(
  command: ControlCommand,
  digests: readonly Digest[],
  deps: ControlMeshDeps,
  signal: AbortSignal,
): Promise<readonly ControlOutcome[]> {
  const holders = holdersOf(command, deps.rank(digests));
  const asked = await Promise.all(chosen(command, holders).map(async node => ask(command, node, deps, signal)));
  return asked.flat();
}

function holdersOf({model, node}: ControlCommand, nodes: readonly Ranked[]): readonly Ranked[] {
  const named = node === undefined ? nodes : nodes.filter(known => isNamed(known, node, known.self));
  if (named.length === 0) {
    const known = nodes.map(({name}) => name).join(', ');
    throw new Fault('NODE_NOT_FOUND', `no node is called ${node}; those that are known: ${known}`);
  }
  const holders = named.filter(({digest}) => digest !== undefined);
  if (holders.length > 0) return holders;
  const who = node === undefined ? 'no node that can be reached has' : `node ${node} does not have`;
  throw new Fault('MODEL_NOT_FOUND', `${who} ${model}; see: hearsay models`);
}

/** Every node that has the model; to load it as many of the best as wanted; to read a log one where it is loaded. */
function chosen(command: ControlCommand, holders: readonly Ranked[]): readonly Ranked[] {
  const {node, model} = command;
  switch (command.kind) {
    case 'stop':
    case 'show':
      return holders;
    case 'logs': {
      const loaded = holders.filter(({state}) => state === 'ready' || state === 'loading');
      const readable = loaded.length > 0 ? loaded : holders;
      return [readable.find(({self}) => self) ?? readable[0]].filter(one => one !== undefined);
    }
    case 'load': {
      const able = node === undefined ? holders.filter(({place}) => place !== undefined) : holders;
      const {copies = 1} = command;
      if (able.length >= copies) return able.slice(0, copies);
      const reasons = holders.map(({name, exclusion}) => `${name}: ${exclusion ?? 'not asked'}`).join('; ');
      if (able.length === 0) throw new Fault('NO_CANDIDATE', `no node can load ${model} now (${reasons})`);
      throw new Fault('NO_CANDIDATE', tooFew(copies, model, able, holders));
    }
  }
}

function tooFew(copies: number, model: string, able: readonly Ranked[], holders: readonly Ranked[]): string {
  const names = able.map(({name}) => name).join(', ');
  const others = holders.filter(one => !able.includes(one)).map(({name, exclusion}) => `${name}: ${exclusion ?? ''}`);
  const why = others.length > 0 ? `; not on ${others.join('; ')}` : '; no other node that can be reached has it';
  const count = able.length === 1 ? 'one copy' : `${able.length} copies`;
  return `${count} of ${model} can be loaded, not ${copies}: on ${names}${why}`;
}

/** One node's outcome; none when a node was only asked because it might have something to stop, and is not there. */
async function ask(
  command: ControlCommand,
  {node, name, self, digest}: Candidate,
  deps: ControlMeshDeps,
  signal: AbortSignal,
): Promise<readonly ControlOutcome[]> {
  if (digest === undefined) return [];
  const outcome = (answer: ControlAnswer): readonly ControlOutcome[] => [
    {node, nodeName: name || shortNode(node), local: self, digest, answer},
  ];
  try {
    const request = requestOf(command, digest);
    return outcome(await (self ? controlHere(request, deps) : deps.mesh.control(node, request, signal)));
  } catch (error) {
    return outcome({kind: 'refused', message: describeError(error)});
  }
}

function requestOf(command: ControlCommand, digest: Digest): ControlRequest {
  switch (command.kind) {
    case 'load':
      return {kind: 'load', digest, context: command.context, slots: command.slots, keep: command.keep};
    case 'stop':
    case 'show':
      return {kind: command.kind, digest};
    case 'logs':
      return {kind: 'logs', digest, after: command.after};
  }
}
