import type {Run} from './sim-engines.ts';

/** Law 2. */
const doubleRunMsMax = 5000;

/** The laws of the design as far as they can be seen from outside, and what was found against them. */
export class Rules {
  readonly broken: string[] = [];
  readonly #nowMs: () => number;
  readonly #doubleSinceMs = new Map<string, number>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Notes a broken rule. */
  breach(words: string): 'BROKEN RULE' {
    this.broken.push(`${this.#nowMs()} ms: ${words}`);
    return 'BROKEN RULE';
  }

  /** Law 2: no two nodes run one request for longer than the limit. */
  watchRuns(runs: readonly Run[]): void {
    const nowMs = this.#nowMs();
    const running = Map.groupBy(
      runs.filter(({endedMs}) => endedMs === undefined),
      ({request}) => request,
    );
    for (const request of this.#doubleSinceMs.keys()) {
      if ((running.get(request)?.length ?? 0) < 2) this.#doubleSinceMs.delete(request);
    }
    for (const [request, several] of running) {
      if (several.length < 2) continue;
      const sinceMs = this.#doubleSinceMs.get(request) ?? nowMs;
      this.#doubleSinceMs.set(request, sinceMs);
      const nodes = several.map(({node}) => node).join(' and ');
      if (nowMs - sinceMs > doubleRunMsMax) this.breach(`law 2: ${request} runs on ${nodes}`);
    }
  }

  /** Law 3: what a client got comes from one run, in order, from the first piece on. */
  checkText(request: string, text: string): void {
    const pieces = [...text.matchAll(/"run":"(?<run>[^"]+)","token":(?<token>\d+)/gu)];
    if (new Set(pieces.map(({groups}) => groups?.['run'])).size > 1) this.breach(`law 3: ${request} was replayed`);
    if (pieces.some(({groups}, index) => Number(groups?.['token']) !== index + 1)) {
      this.breach(`law 3: ${request} lost or doubled a piece`);
    }
  }
}
