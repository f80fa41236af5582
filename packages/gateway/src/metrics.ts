import type {EngineReport, ModelReport, NodeReport, StatusReport} from '@hearsay/core';

/** Upper ends of the classes that answers are counted in, in seconds: from a list of models to a long story. */
const secondsClasses = [0.01, 0.1, 1, 10, 60, 600] as const;

interface Counts {
  readonly path: string;
  readonly byStatus: Map<number, number>;
  readonly byClass: number[];
  total: number;
  seconds: number;
}

/** What of the mesh is told to whoever asks. */
interface Seen {
  readonly nodes: readonly NodeReport[];
  readonly engines: readonly EngineReport[];
  readonly models: readonly ModelReport[];
}

/** Counts answers, and writes them and the state of the mesh down as Prometheus reads it. */
export class Metrics {
  /** As many as there are routes. */
  readonly #paths = new Map<string, Counts>();

  /** An answer has ended; a client that left counts as 499. */
  note(path: string, status: number, seconds: number): void {
    const counts = this.#paths.get(path) ?? newCounts(path);
    this.#paths.set(path, counts);
    counts.byStatus.set(status, (counts.byStatus.get(status) ?? 0) + 1);
    counts.total += 1;
    counts.seconds += seconds;
    for (const [index, most] of secondsClasses.entries()) {
      if (seconds <= most) counts.byClass[index] = (counts.byClass[index] ?? 0) + 1;
    }
  }

  text({nodes, engines, models}: Seen, {version, name, id, uptimeSeconds}: StatusReport, inFlight: number): string {
    const states = ['alive', 'seen', 'unreachable', 'draining'] as const;
    return [
      family('info', 'gauge', 'This node.', [[{version, node: name, id}, 1]]),
      family('uptime_seconds', 'gauge', 'Since this daemon started.', [[{}, uptimeSeconds]]),
      family('requests_in_flight', 'gauge', 'Requests that are being read or answered here now.', [[{}, inFlight]]),
      family(
        'nodes',
        'gauge',
        'Nodes that this one knows, itself among them.',
        states.map(state => [{state}, nodes.filter(node => node.state === state).length]),
      ),
      family('models', 'gauge', 'Models that some node has.', [[{}, models.length]]),
      ...(['slots', 'busy', 'queued'] as const).map(what =>
        family(
          `engine_${what}`,
          'gauge',
          engineHelp[what],
          engines.map(engine => [{model: engine.name, node: engine.nodeName, id: engine.nodeId}, engine[what]]),
        ),
      ),
      ...this.#requests(),
    ].join('');
  }

  #requests(): readonly string[] {
    const all = [...this.#paths.values()];
    const statuses = all.flatMap(({path, byStatus}) =>
      [...byStatus].map(([status, count]): Sample => [{path, status: String(status)}, count]),
    );
    const classes = all.flatMap(({path, byClass, total}) => [
      ...secondsClasses.map((most, index): Sample => [{path, le: String(most)}, byClass[index] ?? 0]),
      [{path, le: '+Inf'}, total] satisfies Sample,
    ]);
    const sums = all.map(({path, seconds}): Sample => [{path}, seconds]);
    const totals = all.map(({path, total}): Sample => [{path}, total]);
    return [
      family('requests_total', 'counter', 'Answers by status; 499: the client left.', statuses),
      header('request_seconds', 'histogram', 'From the head of a request to the end of its answer.'),
      samples('request_seconds_bucket', classes),
      samples('request_seconds_sum', sums),
      samples('request_seconds_count', totals),
    ];
  }
}

type Sample = readonly [labels: Readonly<Record<string, string>>, value: number];

const engineHelp = {
  slots: 'Requests that an engine can run at once.',
  busy: 'Requests that an engine runs now.',
  queued: 'Requests that wait for an engine.',
} as const;

function family(name: string, type: string, help: string, all: readonly Sample[]): string {
  return header(name, type, help) + samples(name, all);
}

function header(name: string, type: string, help: string): string {
  return `# HELP hearsay_${name} ${help}\n# TYPE hearsay_${name} ${type}\n`;
}

function samples(name: string, all: readonly Sample[]): string {
  return all.map(([labels, value]) => `hearsay_${name}${labelText(labels)} ${value}\n`).join('');
}

function labelText(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return pairs.length > 0 ? `{${pairs.join(',')}}` : '';
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}

function newCounts(path: string): Counts {
  return {path, byStatus: new Map(), byClass: secondsClasses.map(() => 0), total: 0, seconds: 0};
}
