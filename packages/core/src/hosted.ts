import {allows} from './caller.ts';
import type {Caller} from './caller.ts';
import {isNamed} from './candidates.ts';
import type {Fault, FaultCode} from './fault.ts';
import type {Digest} from './ids.ts';
import type {Policy} from './policy.ts';
import type {Worker} from './work.ts';

/** What a hosted service runs for one of our names. */
interface HostedModel {
  /** Names of ours that it stands in for, with `*` for any characters. */
  readonly pattern: string;
  /** Nobody can hash what a service runs; this stands for the service and its own name of the model. */
  readonly digest: Digest;
}

/** A service on the internet that the owner of this node pays for. Only this node uses it; it is never gossiped. */
export interface HostedService {
  readonly name: string;
  /** Refuses whatever must stay local, whoever asks (law 7). */
  readonly worker: Worker;
  readonly models: readonly HostedModel[];
  /** A request that would wait longer than this for a node may go to the service instead. */
  readonly waitMsMax: number;
}

/** A service that may run a request, and what it would run. */
export interface HostedChoice {
  readonly service: HostedService;
  readonly digest: Digest;
}

export interface HostedQuestion {
  /** What the request asks for, by all its names. */
  readonly names: readonly string[];
  readonly policy: Policy;
  readonly caller: Caller | undefined;
}

/**
 * Pure: the services that a request may leave for, in the order of the config. None for local-required, and none for a
 * pin, which means one computer and never a service (S93). A key that names nodes must name the service too.
 */
export function hostedChoices(
  services: readonly HostedService[],
  {names, policy, caller}: HostedQuestion,
): readonly HostedChoice[] {
  if (policy.localRequired || policy.placement.kind === 'pin') return [];
  return services.flatMap(service => {
    const {name, worker, models} = service;
    const isMeant = (text: string): boolean => isNamed({node: worker.node, name}, text, false);
    if (policy.exclude.some(isMeant)) return [];
    if (caller?.rights.nodes && !caller.rights.nodes.some(isMeant)) return [];
    const model = models.find(({pattern}) => allows([pattern], names));
    return model ? [{service, digest: model.digest}] : [];
  });
}

/** Pure: whether a fault says that no node of the mesh can run the request now, and not that the request is wrong. */
export function isOutOfNodes({code}: Fault): boolean {
  return outOfNodes.has(code);
}

const outOfNodes: ReadonlySet<FaultCode> = new Set([
  'MODEL_NOT_FOUND',
  'NO_CANDIDATE',
  'OVERLOADED',
  'ENGINE_MISSING',
  'ENGINE_FAILED',
  'PEER_FAILED',
]);

/** Pure: how a service is called where nodes are named, so that nobody takes it for a machine of the mesh. */
export function hostedName(name: string): string {
  return `${name} (hosted)`;
}
