import {
  automatic,
  describeError,
  Fault,
  hostedChoices,
  hostedName,
  isOutOfNodes,
  formatPolicy,
  newRequestId,
  outcomeOf,
  planRequest,
  planUnheld,
  readUsage,
  resolveModel,
  timeLimit,
  toNamedModel,
} from '@hearsay/core';
import type {Answer, ClientRequest, Cluster, HeldModel, Plan, ModelReport, PlanResult, Policy} from '@hearsay/core';
import type {HostedService, PlanInputs, PolicyWish, Ranked, RequestEvent, Workload} from '@hearsay/core';
import type {Announcer} from './announcer.ts';
import {causeOfEnd} from './broken-end.ts';
import {chooseNode} from './choose-node.ts';
import type {ChooserConfig, ChooserDeps, Wanted as Choosing} from './choose-node.ts';
import {dispatch} from './dispatch.ts';
import type {Started} from './dispatch.ts';
import {startWithFallback} from './hosted-fallback.ts';
import {FairQueue, queueLimits} from './fair-queue.ts';
import type {ClusterDeps} from './join-cluster.ts';
import type {OperatorKeeper} from './keep-operator.ts';
import {reportModels, reportModelsAway} from './reports.ts';
import {lineFor} from './request-line.ts';
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
  /** Services outside the mesh; only a request that is local-preferred may leave for one (law 7). */
  readonly hosted: readonly HostedService[];
}

/** What this node does for its own clients: from a name to a node that runs it. */
export interface Entry extends Pick<Cluster, 'dispatch' | 'route' | 'inFlight' | 'waiting'> {
  /** What is meant by a name at this node. Throws MODEL_NOT_FOUND and says what is close. */
  readonly find: (asked: string, signal: AbortSignal) => Promise<Plan>;
  /** Every node, the best for any request for one of these first. */
  readonly rank: (digests: Plan['digests']) => readonly Ranked[];
}

export function makeEntry(config: EntryConfig, entry: EntryDeps): Entry {
  const {announcer, choosing, hosted, keeper, operator, deps} = entry;
  const {clock, journal, log, random} = deps;
  const startedAtMs = clock.monotonicMs();
  const queue = new FairQueue(queueLimits, clock);
  let inFlight = 0;
  let catalogue: {holdings: number; inventory: Uint8Array; models: readonly HeldModel[]} | undefined;

  /** Every name there is, put together anew only when something of it has changed: each request asks for it. */
  function known(): readonly HeldModel[] {
    const holdings = keeper.holdings();
    const inventory = announcer.inventory();
    if (catalogue?.holdings !== holdings || catalogue.inventory !== inventory) {
      catalogue = {holdings, inventory, models: heldModels(reportModels(entry, true))};
    }
    return catalogue.models;
  }

  function inputsFor({model: asked, needs, wish, caller}: Wanted): PlanInputs {
    const {workloads, policy} = config;
    return {asked, needs, wish, caller, models: known(), workloads, operator: operator.state(), policy};
  }

  function planFor(asking: Wanted): PlanResult {
    return planRequest(inputsFor(asking));
  }

  /** For a name that no node has: the plan, when a hosted service may stand in; otherwise throws the same again. */
  function planAbroad(asking: Wanted, error: unknown): {readonly plan: Plan; readonly missing: Fault} {
    if (hosted.length === 0 || !(error instanceof Fault) || !isOutOfNodes(error)) throw error;
    const plan = planUnheld(inputsFor(asking));
    const {policy} = plan;
    if (hostedChoices(hosted, {names: namesOf(plan, asking), policy, caller: asking.caller}).length === 0) throw error;
    return {plan, missing: error};
  }

  function namesOf({name, digests}: Plan, {model}: Wanted): readonly string[] {
    return [name, model, ...known().flatMap(({digest, names}) => (digests.includes(digest) ? names : []))];
  }

  /** What none of the accepted models can do, which is then all that the client is told. */
  function lackedBy({digests, needs}: Plan): Pick<Plan, 'needs'> {
    const accepted = known().filter(({digest}) => digests.includes(digest));
    const lacked = needs.filter(need => !accepted.some(({capabilities}) => capabilities.includes(need)));
    return {needs: lacked.length > 0 ? lacked : needs};
  }

  /** Waits a little for peers that may know the name: while this node is young, or when it has just lost some. */
  async function settledPlan(asking: Wanted, signal: AbortSignal): Promise<Plan> {
    const askedAtMs = clock.monotonicMs();
    for (;;) {
      const plan = planFor(asking);
      if (plan.kind === 'plan') return plan;
      const away = holdersAway(asking.model);
      const settlesInMs = (away.length > 0 ? askedAtMs : startedAtMs) + settlingMs - clock.monotonicMs();
      if (settlesInMs <= 0)
        throw unusable(asking.model) ?? outOfReach(asking.model, away) ?? notFound(asking.model, plan);
      using limit = timeLimit(clock, settlesInMs, 'settling', signal);
      await keeper.changed(limit.signal);
      signal.throwIfAborted();
    }
  }

  /** Names of the nodes that had a model of that name a moment ago, but are not connected now. */
  function holdersAway(asked: string): readonly string[] {
    if (asked === '') return [];
    const away = reportModelsAway(entry);
    const resolution = resolveModel(asked, away.map(toNamedModel));
    if (resolution.kind !== 'found') return [];
    const holders = away.filter(({digest}) => resolution.digests.includes(digest));
    return holders.flatMap(({nodes}) => nodes.map(({name}) => name));
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
    return choice.rank(digests, {tried: new Set(), busy: new Set()}).ranked;
  }

  async function run(request: ClientRequest, signal: AbortSignal): Promise<Answer> {
    let attemptsBefore = 0;
    const note = (event: RequestEvent): void => {
      if (event.kind === 'offered') attemptsBefore = event.attempt;
      journal.note(request.id, event);
    };
    note(arrivalOf(request));
    const asking = {...request, wish: wishOf(request)};
    const {plan, missing} = await settledPlan(asking, signal).then(
      found => ({plan: found, missing: undefined}),
      (error: unknown) => planAbroad(asking, error),
    );
    const {name: model, needs, policy, policyFrom} = plan;
    const written = formatPolicy(policy);
    note({kind: 'planned', model, policy: written, policyFrom});
    const planned = {...request, model, needs, policy, body: withParameters(request, plan.parameters)};
    const options = {digests: plan.digests, exact: plan.exact};
    const bodyBytes = planned.body.length;
    const promptBytes = bodyBytes - (request.hints?.mediaBytes ?? 0);
    const choice = chooseNode({...planned, promptBytes, bodyBytes}, config, choosing, note);
    const local = async (waitMsMax: number | undefined): Promise<Started> => {
      if (missing) throw missing;
      const line = lineFor(planned, plan.digests, queue);
      const found = await dispatch(
        {...planned, ...lackedBy(plan)},
        options,
        {...choice, line, waitMsMax, attemptsBefore},
        signal,
      );
      choice.started(found);
      return found;
    };
    const names = namesOf(plan, asking);
    const fallback = {...choice, services: hosted, names, note, attempts: () => attemptsBefore, local};
    const started = await startWithFallback(planned, fallback, signal);
    const {node, attempt: attempts, digest, response, body} = started;
    body.onEnd = error => {
      inFlight -= 1;
      const end = {text: body.tail.text(), isAll: body.tail.isAll};
      const cause = causeOfEnd(error, {...response, ...end, nodeName: node.name, isClientGone: signal.aborted});
      note({kind: 'ended', ...outcomeOf(cause, response.status), usage: readUsage(end.text)});
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
    waiting: request => queue.placeOf(request),
    find: async (model, signal) => settledPlan({model, needs: [], wish: undefined, caller: undefined}, signal),
    rank: digests => choose({needs: [], policy: automatic, promptBytes: 0}, digests),
    route({model: asked, needs, policy: wished, promptBytes}) {
      const wish: PolicyWish | undefined = wished && {from: 'header', policy: wished};
      const asking: Wanted = {model: asked, needs, wish, caller: undefined};
      const found = planFor(asking);
      const plan = found.kind === 'plan' ? found : planAbroad(asking, notFound(asked, found)).plan;
      const {digests, name: model, policy, policyFrom} = plan;
      const ranked = choose({needs: plan.needs, policy, promptBytes}, digests);
      const choices = hostedChoices(hosted, {names: namesOf(plan, asking), policy, caller: undefined});
      const services = choices.map(({service: {name, waitMsMax}}) => ({name: hostedName(name), waitMsMax}));
      return {asked, model, digests, policy: formatPolicy(policy), policyFrom, promptBytes, ranked, hosted: services};
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

/** Nothing is wrong with the name, so the client may try again. */
function outOfReach(asked: string, holders: readonly string[]): Fault | undefined {
  if (holders.length === 0) return undefined;
  const message = `${asked} is on ${holders.join(', ')}, which this node cannot reach at the moment`;
  return new Fault('NO_CANDIDATE', message, {details: {holders}});
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
