import {join} from 'node:path';
import type {StorePlace} from '@hearsay/models';
import type {Variables} from './system.ts';

type StoreName = 'huggingface' | 'ollama' | 'lmstudio' | 'llama.cpp';

/** Programs whose models hearsay finds by itself. */
export const storeNames: readonly StoreName[] = ['huggingface', 'ollama', 'lmstudio', 'llama.cpp'];

export interface StoreSurroundings {
  readonly home: string;
  readonly variables: Variables;
  readonly platform: NodeJS.Platform;
}

/** A store, or a store and where it is: `ollama`, `ollama=/srv/models`. */
export function isStoreText(text: string): boolean {
  return parseStore(text) !== undefined;
}

/** Pure: where the models of these programs lie. The places need not exist. */
export function storePlaces(texts: readonly string[], surroundings: StoreSurroundings): readonly StorePlace[] {
  const places = texts.flatMap(text => {
    const store = parseStore(text);
    if (store === undefined) return [];
    const paths = store.path === undefined ? standardPaths(store.kind, surroundings) : [store.path];
    return paths.map((path): StorePlace => ({kind: store.kind, path}));
  });
  return [...new Map(places.map(place => [`${place.kind} ${place.path}`, place])).values()];
}

function parseStore(text: string): {readonly kind: StoreName; readonly path: string | undefined} | undefined {
  const [, name = '', path] = /^([^=]+)(?:=(.+))?$/u.exec(text) ?? [];
  const kind = storeNames.find(known => known === name.trim().toLowerCase());
  return kind && {kind, path};
}

/** The folders of a program as it finds them itself (facts: llama-server §5), its own variables first. */
function standardPaths(store: StoreName, {home, variables, platform}: StoreSurroundings): readonly string[] {
  const given = (name: string): string | undefined => variables[name] || undefined;
  const cache = given('XDG_CACHE_HOME') ?? join(home, '.cache');
  switch (store) {
    case 'huggingface': {
      const hub = given('HF_HUB_CACHE') ?? given('HUGGINGFACE_HUB_CACHE') ?? inFolder(given('HF_HOME'), 'hub');
      // llama.cpp keeps what it downloads in the same layout, wherever its own variable says.
      return [given('LLAMA_CACHE'), hub ?? join(cache, 'huggingface', 'hub')].filter(path => path !== undefined);
    }
    case 'ollama':
      return [
        given('OLLAMA_MODELS') ?? join(home, '.ollama', 'models'),
        // Where Ollama's installer for Linux makes it run as a service of its own user.
        ...(platform === 'linux' && !given('OLLAMA_MODELS') ? ['/usr/share/ollama/.ollama/models'] : []),
      ];
    case 'lmstudio':
      return [join(home, '.lmstudio', 'models'), join(home, '.cache', 'lm-studio', 'models')];
    case 'llama.cpp': {
      const system =
        platform === 'darwin'
          ? join(home, 'Library', 'Caches')
          : platform === 'win32'
            ? (given('LOCALAPPDATA') ?? join(home, 'AppData', 'Local'))
            : cache;
      return [given('LLAMA_CACHE') ?? join(system, 'llama.cpp')];
    }
  }
}

function inFolder(folder: string | undefined, name: string): string | undefined {
  return folder === undefined ? undefined : join(folder, name);
}
