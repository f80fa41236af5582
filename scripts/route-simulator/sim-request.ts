/** One request of the simulation. Times in seconds of the timeline. */
export interface SimRequest {
  readonly id: number;
  readonly session: number;
  readonly app: number;
  readonly model: number;
  /** Tokens of the whole prompt; of those that were in the conversation before; and of the system prompt of its app. */
  readonly prompt: number;
  readonly history: number;
  readonly system: number;
  readonly output: number;
  readonly arrivedAt: number;
  /** The node where it entered. */
  readonly entry: number;
  /** What its client does after the answer. */
  readonly onEnd: () => void;
  startedAt: number;
  firstAt: number | undefined;
  /** Tokens of the prompt that the engine had read already. */
  hit: number;
}
