import {
  automatic,
  describeError,
  Fault,
  formatPolicy,
  newRequestId,
  outcomeOf,
  planRequest,
  readUsage,
  resolveModel,
  timeLimit,
  toNamedModel,
} from '@hearsay/core';
import type {Answer, ClientRequest, Cluster, HeldModel, Plan, ModelReport, PlanResult, Policy} from '@hearsay/core';
import type {PolicyWish, Ranked, RequestEvent, Workload} from '@hearsay/core';
import type {Announcer} from './announcer.ts';
import {chooseNode} from './choose-node.ts';
import type {ChooserConfig, ChooserDeps, Wanted as Choosing} from './choose-node.ts';
import {dispatch} from './dispatch.ts';
import type {ClusterDeps} from './join-cluster.ts';
import type {OperatorKeeper} from './keep-operator.ts';
import {reportModels} from './reports.ts';
import type {ViewKeeper} from './view-keeper.ts';
import {withParameters} from './with-parameters.ts';

/** After the start an unknown name may be known in a moment: wait this long for peers before saying 404 (R112). */
const settlingMs = 3000;

export interface EntryConfig extends ChooserConfig {
  readonly workloads: readonly Workload[];
  /** What holds for requests for which nobody wishes anything else. */
  readonly policy: Policy | undefined;
}

export interface EntryDeps {
  readonly deps: ClusterDeps;
  readonly keeper: ViewKeeper;
  readonly announcer: Announcer;
  readonly operator: OperatorKeeper;
  readonly choosing: ChooserDeps;
}

/** What this node does for its own clients: from a name to a node that runs it. */
export interface Entry extends Pick<Cluster, 'dispatch' | 'route' | 'inFlight'> {
  /** What is meant by a name at this node. Throws MODEL_NOT_FOUND and says what is close. */
  readonly find: (asked: string, signal: AbortSignal) => Promise<Plan>;
  /** Every node, the best for any request for one of these first. */
  readonly rank: (digests: Plan['digests']) => readonly Ranked[];
}

export function makeEntry(config: EntryConfig, entry: EntryDeps): Entry {
  const {announcer, choosing, keeper, operator, deps} = entry;
  const {clock, journal, log, random} = deps;
  const startedAtMs = clock.monotonicMs();
  let inFlight = 0;
  let catalogue: {version: number; inventory: Uint8Array; models: readonly HeldModel[]} | undefined;

  /** Every name there is, put together anew only when something of it has changed: each request asks for it. */
  function known(): readonly HeldModel[] {
    const version = keeper.version();
    const inventory = announcer.inventory();
    if (catalogue?.version !== version || catalogue.inventory !== inventory) {
      catalogue = {version, inventory, models: heldModels(reportModels(entry, true))};
    }
    return catalogue.models;
  }

  function planFor(asking: Wanted): PlanResult {
    const {model: asked, needs, wish, caller} = asking;
    const {workloads, policy} = config;
    const here = {models: known(), workloads, operator: operator.state(), policy};
    return planRequest({asked, needs, wish, caller, ...here});
  }

  /** Waits a little for peers while this node is young, for they may know the name. */
  async function settledPlan(asking: Wanted, signal: AbortSignal): Promise<Plan> {
    for (;;) {
      const settlesInMs = startedAtMs + settlingMs - clock.monotonicMs();
      const plan = planFor(asking);
      if (plan.kind === 'plan') return plan;
      if (settlesInMs <= 0) throw unusable(asking.model) ?? notFound(asking.model, plan);
      using limit = timeLimit(clock, settlesInMs, 'settling', signal);
      await keeper.changed(limit.signal);
      signal.throwIfAborted();
    }
  }

  /** A model of that name is here, but it cannot be used: whoever asks for it hears why (R78). */
  function unusable(asked: string): Fault | undefined {
    const broken = reportModels(entry, true).filter(({problem}) => problem !== undefined);
    const resolution = resolveModel(asked, broken.map(toNamedModel));
    const digest = resolution.kind === 'found' && asked !== '' ? resolution.digests[0] : undefined;
    const model = broken.find(report => report.digest === digest);
    if (!model) return undefined;
    const message = `${model.name} cannot be used: ${model.problem}`;
    return new Fault('BAD_FILE', message, {details: {param: 'model'}});
  }

  /** As for a request that nobody has been asked about yet. */
  function choose(
    wanted: Pick<Choosing, 'needs' | 'policy' | 'promptBytes'>,
    digests: Plan['digests'],
  ): readonly Ranked[] {
    const id = newRequestId(random);
    const choice = chooseNode({id, caller: undefined, ...wanted}, config, choosing, () => undefined);
    return choice.rank(digests, {tried: new Set(), busy: new Set()});
  }

  async function run(request: ClientRequest, signal: AbortSignal): Promise<Answer> {
    const note = (event: RequestEvent): void => journal.note(request.id, event);
    note(arrivalOf(request));
    const asking = {...request, wish: wishOf(request)};
    const plan = await settledPlan(asking, signal);
    const {name: model, needs, policy, policyFrom} = plan;
    const written = formatPolicy(policy);
    note({kind: 'planned', model, policy: written, policyFrom});
    const planned = {...request, model, needs, policy, body: withParameters(request.body, plan.parameters)};
    const options = {digests: plan.digests, exact: plan.exact};
    const choice = chooseNode({...planned, promptBytes: planned.body.length}, config, choosing, note);
    const started = await dispatch(planned, options, choice, signal);
    choice.started(started);
    const {node, attempt: attempts, digest, response, body} = started;
    body.onEnd = error => {
      inFlight -= 1;
      note({kind: 'ended', ...outcomeOf(error, response.status), usage: readUsage(body.tail.text())});
    };
    const {status, contentType} = response;
    const isMissed = policy.placement.kind === 'prefer' && !node.preferred;
    const reason = isMissed ? `preference not met: ${node.reason}` : node.reason;
    const facts = {attempts, policy: written, reason, model};
    return {run: {...facts, node: node.node, nodeName: node.name, digest}, status, contentType, body};
  }

  return {
    async dispatch(request, signal) {
      inFlight += 1;
      try {
        return await run(request, signal);
      } catch (error) {
        inFlight -= 1;
        const cause: unknown = signal.aborted ? signal.reason : error;
        journal.note(request.id, {kind: 'ended', ...outcomeOf(cause), usage: undefined});
        log('debug', 'request failed', {request: request.id, error: describeError(cause)});
        if (signal.aborted) throw new Fault('CANCELLED', 'the client went away', {cause: error});
        throw error;
      }
    },
    inFlight: () => inFlight,
    find: async (model, signal) => settledPlan({model, needs: [], wish: undefined, caller: undefined}, signal),
    rank: digests => choose({needs: [], policy: automatic, promptBytes: 0}, digests),
    route({model: asked, needs, policy, promptBytes}) {
      const wish: PolicyWish | undefined = policy && {from: 'header', policy};
      const plan = planFor({model: asked, needs, wish, caller: undefined});
      if (plan.kind !== 'plan') throw notFound(asked, plan);
      const {digests, name: model, policyFrom} = plan;
      const ranked = choose({needs: plan.needs, policy: plan.policy, promptBytes}, digests);
      return {asked, model, digests, policy: formatPolicy(plan.policy), policyFrom, promptBytes, ranked};
    },
  };
}

/** What planning needs to know. */
interface Wanted extends Pick<ClientRequest, 'model' | 'needs' | 'caller'> {
  readonly wish: PolicyWish | undefined;
}

/** A dialect that does not say where a policy comes from has it from a header, if it is more than the default. */
function wishOf({policy, policyFrom}: ClientRequest): PolicyWish | undefined {
  if (policyFrom !== undefined) return {from: policyFrom, policy};
  return formatPolicy(policy) === formatPolicy(automatic) ? undefined : {from: 'header', policy};
}

function arrivalOf({model, endpoint, policy, body, caller}: ClientRequest): RequestEvent {
  const asked = {model, endpoint, policy: formatPolicy(policy), bodyBytes: body.length};
  return {kind: 'arrived', role: 'entry', ...asked, caller: caller?.name, from: undefined};
}

function heldModels(reports: readonly ModelReport[]): readonly HeldModel[] {
  return reports
    .filter(({problem}) => problem === undefined)
    .map(report => {
      const {nodes, quant, capabilities, contextMax} = report;
      return {...toNamedModel(report), nodes, quant, capabilities, contextMax};
    });
}

function notFound(asked: string, plan: Exclude<PlanResult, Plan>): Fault {
  switch (plan.kind) {
    case 'unnamed': {
      const known = plan.known.length > 0 ? `one of: ${plan.known.join(', ')}` : 'but no node has any yet';
      return new Fault('BAD_REQUEST', `the request names no model; name ${known}`, {details: {param: 'model'}});
    }
    case 'unaccepted': {
      const message = `no node has a model that the workload ${plan.name} accepts (${plan.accepted.join(', ')})`;
      return new Fault('NO_CANDIDATE', message, {details: {accepted: plan.accepted}});
    }
    case 'unknown': {
      const hint = plan.close.length > 0 ? `did you mean ${plan.close.join(' or ')}?` : 'see `hearsay models`';
      const details = {param: 'model', close: plan.close};
      return new Fault('MODEL_NOT_FOUND', `model '${asked}' not found on any node; ${hint}`, {details});
    }
  }
}
