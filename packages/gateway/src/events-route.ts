import type {ServerResponse} from 'node:http';
import type {Clock, Cluster} from '@hearsay/core';
import {eventText} from './event-reply.ts';
import {changesBetween, pictureOf} from './mesh-changes.ts';
import type {MeshChange, MeshPicture} from './mesh-changes.ts';
import type {Problem} from './problem.ts';
import type {Route} from './routes.ts';
import {eventStreamType} from './stream-output.ts';

/** How often the mesh is looked at while somebody listens: often enough for people. */
const lookEveryMs = 500;

/** Between signs of life: proxies close what is silent for a minute. */
const keepAliveMs = 15_000;

/** Far more pages than anybody has open. */
const listenersMax = 64;

/** A listener that has not read so much is not going to. */
const unreadBytesMax = 1024 * 1024;

interface EventService {
  readonly cluster: Pick<Cluster, 'nodes' | 'engines' | 'models'>;
  readonly clock: Clock;
}

/** What changes in the mesh, as server-sent events: first everything there is, then each change as it is seen. */
export function eventsRoute(service: EventService): Route {
  const feed = new Feed(service);
  return {
    method: 'GET',
    paths: ['/hearsay/v1/events'],
    handle: async ({raw: {method}}, {raw}) => {
      if (feed.size >= listenersMax) return tooMany();
      raw.writeHead(200, {'content-type': eventStreamType, 'cache-control': 'no-cache', 'x-accel-buffering': 'no'});
      if (method === 'HEAD') raw.end();
      else feed.add(raw);
      return undefined;
    },
  };
}

/** Looks only while somebody listens, and once for all of them. */
class Feed {
  readonly #service: EventService;
  readonly #listeners = new Set<ServerResponse>();
  #picture: MeshPicture = new Map();
  #timer: Disposable | undefined;
  #quietMs = 0;

  constructor(service: EventService) {
    this.#service = service;
  }

  get size(): number {
    return this.#listeners.size;
  }

  add(response: ServerResponse): void {
    if (this.#listeners.size === 0) this.#picture = pictureOf(this.#service.cluster);
    this.#listeners.add(response);
    response.on('error', () => {}); // 'close' follows and says the same
    response.once('close', () => this.#remove(response));
    response.write(textOf(changesBetween(new Map(), this.#picture)) || ': nothing yet\n\n');
    this.#timer ??= this.#wait();
  }

  #remove(response: ServerResponse): void {
    this.#listeners.delete(response);
    if (this.#listeners.size > 0) return;
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
  }

  #wait(): Disposable {
    return this.#service.clock.after(lookEveryMs, () => {
      this.#look();
      this.#timer = this.#listeners.size > 0 ? this.#wait() : undefined;
    });
  }

  #look(): void {
    const picture = pictureOf(this.#service.cluster);
    const text = textOf(changesBetween(this.#picture, picture));
    this.#picture = picture;
    this.#quietMs = text === '' ? this.#quietMs + lookEveryMs : 0;
    if (text !== '') this.#tell(text);
    else if (this.#quietMs % keepAliveMs === 0) this.#tell(': nothing new\n\n');
  }

  #tell(text: string): void {
    for (const listener of this.#listeners) {
      if (listener.writableLength > unreadBytesMax) listener.destroy();
      else listener.write(text);
    }
  }
}

function textOf(changes: readonly MeshChange[]): string {
  return changes.map(({kind, ...data}) => eventText(kind, JSON.stringify(data))).join('');
}

function tooMany(): Problem {
  const message = `already ${listenersMax} clients listen to the events of this node; close one`;
  return {kind: 'problem', status: 429, type: 'rate_limit_error', code: 'too_many_listeners', message};
}
