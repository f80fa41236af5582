import {automatic} from '@hearsay/core';
import type {EngineReport, ModelReport, Policy} from '@hearsay/core';
import type {OllamaCall} from './read-request.ts';

/** Most nodes that are named; the choice among more of them makes no difference. */
const preferredMax = 16;

/**
 * Pure: `num_ctx` as a wish about the node. Where some engines of the model have such a context and others have not, the
 * first are preferred, so that nothing is loaded anew for it (R106). Undefined: it makes no difference.
 */
export function roomyNodes(
  {model: {report}, contextTokens}: Pick<OllamaCall, 'model' | 'contextTokens'>,
  engines: readonly EngineReport[],
): Policy | undefined {
  if (contextTokens === undefined) return undefined;
  const wanted = usableContext(report, contextTokens);
  const loaded = engines.filter(({digest, state}) => digest === report.digest && state === 'ready');
  const roomy = loaded.filter(({context}) => context >= wanted);
  if (roomy.length === 0 || roomy.length === loaded.length) return undefined;
  const nodes = [...new Set(roomy.map(({nodeId}) => nodeId))];
  return {...automatic, placement: {kind: 'prefer', nodes: nodes.slice(0, preferredMax)}};
}

/** Pure: of what a client asks for, as much as the model was trained for. */
export function usableContext({contextMax}: ModelReport, contextTokens: number): number {
  return Math.min(contextTokens, contextMax || contextTokens);
}
