import type {ComponentLogger, Logger} from '@libp2p/interface';

/**
 * libp2p makes loggers for each connection and each stream, that is for each request, and its own ones look at the
 * terminal each time. Nobody can read them in a daemon; what users should know is said by `Log`.
 */
export const silentLogger: ComponentLogger = {forComponent: () => silent};

const silent: Logger = Object.assign(() => {}, {
  error: () => {},
  trace: () => {},
  enabled: false,
  newScope: () => silent,
});
