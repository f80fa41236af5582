/**
 * The HTTP side of a node: speaks the OpenAI API to clients and the admin API to people and tools, over whatever the
 * cluster can run. It hides HTTP: bodies and their encodings, server-sent events, statuses, back-pressure, keep-alive
 * and the rules for browsers. It decides nothing about where a request runs.
 */
export {startGateway} from './start-gateway.ts';
export type {Gateway, GatewayConfig, GatewayDeps} from './start-gateway.ts';
export {startKeyRing} from './key-ring.ts';
export type {KeyRing} from './key-ring.ts';
