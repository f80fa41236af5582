import type {EngineState, Log, StoredModel} from '@hearsay/core';

/** One line for each step in an engine's life; their number is bounded because attempts are (R88). */
export function logChange(log: Log, model: StoredModel, from: EngineState, to: EngineState): void {
  const fields = {model: model.names[0], from: from.kind, to: to.kind};
  switch (to.kind) {
    case 'backing off':
      return log('warn', 'an engine failed and will be started again when it is wanted', {
        ...fields,
        reason: to.reason,
      });
    case 'broken':
      return log('error', 'an engine is broken', {...fields, reason: to.reason});
    case 'ready':
      return log('info', 'an engine is ready', fields);
    case 'stopped':
    case 'starting':
    case 'draining':
    case 'stopping':
      return log('debug', 'an engine changed its state', fields);
  }
}
