/**
 * The rules of hearsay as pure functions over plain data, the ports between packages, and the wire schemas. It hides
 * how records merge, how nodes are ranked and how bytes are laid out; it owns no outside technology and keeps no
 * state.
 */
export {ByteTail} from './byte-tail.ts';
export type {Answer, ClientRequest, Cluster, EngineReport, ModelReport, Place} from './cluster-port.ts';
export type {ControlCommand, ControlOutcome} from './cluster-port.ts';
export {controlBytesMax, decodeControl, decodeControlAnswer, encodeControl, encodeControlAnswer} from './control.ts';
export {logLineLengthMax, logPageLinesMax} from './control.ts';
export type {ControlAnswer, ControlRequest, EngineDetails, LogPage} from './control.ts';
export type {NodeReport, RunFacts, StatusReport} from './cluster-port.ts';
export type {EngineCall, EngineHost, EngineSnapshot, EngineStateName, LoadWish} from './engine-port.ts';
export type {Reservation, ReserveOptions} from './engine-port.ts';
export {stepEngine} from './engine-state.ts';
export type {EngineEffect, EngineEvent, EnginePolicy, EngineState, EngineStep} from './engine-state.ts';
export {estimateFit, fullSize, isCacheType, leastSize, noWish, sizeEngine} from './fit.ts';
export type {CacheLayers, CacheType, EngineSize, Fit, FitConditions, ModelShape, SizeWish} from './fit.ts';
export type {Clock, Environment, Log, LogLevel, Random, TextStore} from './environment.ts';
export {asFault, describeError, Fault, hasCode} from './fault.ts';
export type {FaultCode, FaultOptions} from './fault.ts';
export {formFields, isForm, withFormFields} from './form-fields.ts';
export {formatBytes} from './format-bytes.ts';
export {hostedChoices, hostedName, isOutOfNodes} from './hosted.ts';
export type {HostedChoice, HostedService} from './hosted.ts';
export {hexFrom, isDigest, isNodeId, isProven, isRequestId, newRequestId} from './ids.ts';
export {shortDigest, shortNode, toDigest, toNodeId} from './ids.ts';
export type {Digest, NodeId, RequestId} from './ids.ts';
export {isObject, parseObject} from './json.ts';
export type {JsonObject} from './json.ts';
export {nextKeepAlive, parseKeepAlive} from './keep-alive.ts';
export type {KeepAlive, KeepAliveLimits} from './keep-alive.ts';
export * from './limits.ts';
export type {AgedRecord, Link, Mesh, MeshHandlers, Verdict} from './mesh-port.ts';
export {allows, lacksRight} from './caller.ts';
export type {Caller, Rights} from './caller.ts';
export {addKey, callerOf, formatKeys, parseKeys, parseKeyWish, removeKey} from './key.ts';
export type {Key} from './key.ts';
export {mayUse, usableNodes} from './may-use.ts';
export {planRequest, planUnheld} from './plan-request.ts';
export type {Plan, PlanInputs, PlanResult} from './plan-request.ts';
export type {HeldModel, Workload} from './workload.ts';
export {changeOperator, formatOperator, idleOperator, parseOperator, rulesFor} from './operator.ts';
export type {OperatorChange, OperatorState, PolicyRule} from './operator.ts';
export {automatic, choosePolicy, formatPolicy, parsePolicy} from './policy.ts';
export type {Placement, Policy, PolicySource, PolicyWish} from './policy.ts';
export {capabilities} from './model.ts';
export type {Capability, LoadedFacts, ModelFacts, ModelPreset, ModelStore, StoredModel} from './model.ts';
export {isNewer} from './record.ts';
export type {Beat, EngineBeat, EngineReadiness, HardwareFacts, Inventory, Leave, MemoryFacts} from './record.ts';
export type {NodeFlags, NodeRecord, SignedRecord, Sketch, Stamp} from './record.ts';
export {endpoints, methodOf, needsSlot} from './work.ts';
export type {Busy, BusyReason, Endpoint, Lease, Refusal, RefusalCode} from './work.ts';
export type {Worker, WorkRequest, WorkResponse} from './work.ts';
export {decodeInventory, encodeInventory} from './inventory-codec.ts';
export {decodeRecord, encodeBeat, encodeLeave, encodeSketch, isRecordFromNewer} from './record-codec.ts';
export {decodeOffer, decodeOfferAnswer, decodeSignedRecord} from './wire.ts';
export {encodeOffer, encodeOfferAnswer, encodeSignedRecord} from './wire.ts';
export {isFromNewer, recordContext} from './wire.ts';
export type {Accepted, OfferAnswer} from './wire.ts';
export {timeLimit} from './time-limit.ts';
export type {TimeLimit} from './time-limit.ts';
export {applyInventory, applyRecord, emptyView, expireNodes, isAlive, dropUnneeded} from './view.ts';
export type {KnownNode, View, ViewChange} from './view.ts';
export {candidatesFor, isNamed} from './candidates.ts';
export {exclusionWords} from './exclusion-words.ts';
export type {Candidate, Exclusion, Question, Reach, SelfFacts} from './candidates.ts';
export {compactFacts, decide} from './decide.ts';
export type {DecisionFacts} from './decide.ts';
export type {Arrival, Journal, JournaledEvent, JournaledRequest, JournalQuery, Outcome} from './journal-port.ts';
export type {RequestEvent, RequestSummary, Usage} from './journal-port.ts';
export {readUsage} from './read-usage.ts';
export {outcomeOf, reasonOf, summarize} from './summarize.ts';
export {replayDecisions, whyReport} from './why.ts';
export type {ReplayedDecision, RouteQuestion, RouteReport, WhyEvent, WhyReport} from './why.ts';
export {costTerms} from './cost.ts';
export type {Asked, Cost, CostTerm, Source, Spread} from './cost.ts';
export {firstByteBudgetMs} from './first-byte-budget.ts';
export type {PatienceLimits} from './first-byte-budget.ts';
export {isNews, learn, learnedNames, nothingLearned} from './learned.ts';
export type {LearnedFacts, LearnedName} from './learned.ts';
export {easyMachine, isBatteryLow} from './machine-port.ts';
export type {MachineState, MachineWatch} from './machine-port.ts';
export {guessHardware} from './guess-hardware.ts';
export type {MachineFacts, ProcessorFacts} from './guess-hardware.ts';
export {bytesPerTokenMax, rank, toEntry, weigh} from './rank.ts';
export type {Decision, Ranked} from './rank.ts';
export {isRequestMistake} from './request-mistakes.ts';
export {editDistance, isModelNamed, resolveModel, toNamedModel, withoutDemo} from './resolve-model.ts';
export type {NamedModel, Resolution} from './resolve-model.ts';
export {countUse, makeRoom, planStart, worthOf} from './room.ts';
export type {Resident, StartPlan, StartQuestion, UseCount} from './room.ts';
export {decodeExchange, encodeExchange, exchangeBytesMax} from './exchange-codec.ts';
export type {ChainedStatement, ExchangeMessage, RefusalWord} from './exchange-codec.ts';
export {formatInvite, parseInvite} from './invite.ts';
export type {InviteCode} from './invite.ts';
export {addRevocation, isRevocation, judgeStanding, shouldRenew, statementContext} from './membership.ts';
export type {Checked, Pass, Revocation, Role, SignedStatement, Standing, Statement} from './membership.ts';
export {decodeMembersAnswer, decodeMembersQuestion, decodeStatement} from './membership-codec.ts';
export {encodeMembersAnswer, encodeMembersQuestion, encodeStatement} from './membership-codec.ts';
export type {MembersAnswer, MembersQuestion} from './membership-codec.ts';
export type {
  InviteReport,
  InviteWish,
  MemberReport,
  MeshAdmin,
  MeshReport,
  MeshRole,
  NetworkReport,
} from './mesh-admin.ts';
export {firstTrusted, isTrustedNetwork, judgeAddress, networkKind, trustOf} from './networks.ts';
export type {Network, Trust, TrustedNetwork} from './networks.ts';
export {isInSubnet, isLoopbackAddress, isPrivateAddress, isPrivateSubnet, normalSubnet} from './subnets.ts';
export {mediaTextBytes, routingHints} from './routing-hints.ts';
export type {RoutingHints} from './routing-hints.ts';
export {doubtSelf, noDoubt} from './self-doubt.ts';
export type {SelfDoubt} from './self-doubt.ts';
export {untilAborted} from './until-aborted.ts';
