import {basename, join} from 'node:path';
import {nameLengthMax, parseObject} from '@hearsay/core';
import type {ModelPreset} from '@hearsay/core';
import type {FileDoor} from './file-door.ts';
import {absentStamp, lookAt} from './file-stamp.ts';
import type {FileStamp, Look} from './file-stamp.ts';
import {printableName} from './model-names.ts';
import {foldersTo} from './name-files.ts';
import type {Names} from './name-files.ts';
import {parseLayers} from './ollama-manifest.ts';
import type {OllamaLayers} from './ollama-manifest.ts';
import {readText} from './read-text.ts';
import {scanFolder} from './scan-folder.ts';
import type {FoundGroup, PlaceScan, PlaceScanner} from './scan-place.ts';

/** Layers that never change under their hash: read once, up to so many, then all again. */
const textsMax = 1000;

/** The folders with manifests, in the order in which Ollama itself looks for a name. */
const manifestFolders = ['manifests-v2', 'manifests'] as const;

interface Tag {
  readonly name: string;
  readonly manifest: FileStamp;
  readonly layers: OllamaLayers;
}

/**
 * Reads what Ollama has pulled or made: a manifest per tag, `HOST/NAMESPACE/MODEL/TAG`, which names blobs by their
 * hash. Several tags may share one blob.
 */
export function ollamaScanner(root: string): PlaceScanner {
  const texts = new Map<string, string>();

  async function readBlob(digest: string | undefined, door: FileDoor): Promise<string | undefined> {
    if (digest === undefined) return undefined;
    const known = texts.get(digest);
    if (known !== undefined) return known;
    const text = await readText(blobPath(root, digest), door);
    if (texts.size >= textsMax) texts.clear();
    if (text !== undefined) texts.set(digest, text);
    return text;
  }

  async function presetOf({name, layers}: Tag, door: FileDoor): Promise<ModelPreset | undefined> {
    const [template, system, settings] = [
      await readBlob(layers.template, door),
      await readBlob(layers.system, door),
      await readBlob(layers.parameters, door),
    ];
    if (template === undefined && system === undefined && settings === undefined) return undefined;
    return {name, template, system, parameters: parseParameters(settings)};
  }

  return async (door, signal) => {
    const stamps: FileStamp[] = [];
    const folders: Look[] = [];
    const tags = new Map<string, Tag>();
    let [problem, cut]: (string | undefined)[] = [];
    for (const folder of manifestFolders) {
      const scan = await scanFolder(join(root, folder), door, signal, {takes: name => !name.startsWith('.')});
      folders.push(...scan.folders);
      if (scan.folders.length === 0) stamps.push(absentStamp(join(root, folder)));
      cut ??= scan.cut;
      for (const manifest of scan.files) {
        const name = nameOfManifest(join(root, folder), manifest.path);
        if (name === undefined || tags.has(name.toLowerCase())) continue;
        stamps.push(manifest);
        const text = await readText(manifest.path, door);
        tags.set(name.toLowerCase(), {name, manifest, layers: await parseLayers(text, hash => readBlob(hash, door))});
      }
    }
    if (folders.length === 0) problem = 'it does not exist or is out of reach';
    const blobs = await lookAt(join(root, 'blobs'), door);
    if (blobs?.kind === 'folder') folders.push(blobs);

    const groups = new Map<string, FoundGroup>();
    for (const tag of [...tags.values()].toSorted(latestFirst)) {
      const group = await toGroup(root, tag, await presetOf(tag, door), door);
      const id = group.files.map(({path}) => path).join('\0');
      const other = groups.get(id);
      stamps.push(...group.files);
      groups.set(id, other === undefined ? group : joined(other, group));
    }
    return {groups: [...groups.values()], files: stamps, folders, problem, cut} satisfies PlaceScan;
  };
}

async function toGroup(
  root: string,
  {name, manifest, layers}: Tag,
  preset: ModelPreset | undefined,
  door: FileDoor,
): Promise<FoundGroup> {
  const names: Names = [name];
  const presets = preset ? [preset] : [];
  const useless = {
    names,
    presets,
    files: [manifest],
    projector: undefined,
    promised: [undefined],
    demo: false,
  } as const;
  if (layers.model === undefined) return {...useless, problem: layers.problem ?? 'its manifest names no model'};
  const model = await lookAt(blobPath(root, layers.model), door);
  const projector = layers.projector === undefined ? undefined : await lookAt(blobPath(root, layers.projector), door);
  if (model === undefined || (layers.projector !== undefined && projector === undefined)) {
    const what = model === undefined ? 'its weights are' : 'its projector is';
    return {...useless, problem: `incomplete: ${what} missing; pull it again with Ollama`};
  }
  return {
    names,
    presets,
    files: [model, ...(projector ? [projector] : [])],
    projector,
    problem: layers.problem,
    promised: [layers.model, ...(projector ? [layers.projector] : [])],
    demo: false,
  };
}

function joined(first: FoundGroup, other: FoundGroup): FoundGroup {
  const [name, ...rest] = first.names;
  const names: Names = [name, ...rest, ...other.names.filter(another => !first.names.includes(another))];
  return {...first, names, presets: [...first.presets, ...other.presets], problem: first.problem ?? other.problem};
}

/** `latest` is the tag that people mean when they name none. */
function latestFirst(a: Tag, b: Tag): number {
  const [aLatest, bLatest] = [a.name.endsWith(':latest'), b.name.endsWith(':latest')];
  if (aLatest !== bLatest) return aLatest ? -1 : 1;
  return a.name < b.name ? -1 : 1;
}

/** As Ollama shows it: its own registry and library are left out. Undefined for a file at another depth. */
function nameOfManifest(root: string, path: string): string | undefined {
  const [host, namespace, model, ...deeper] = foldersTo(root, path);
  if (host === undefined || namespace === undefined || model === undefined || deeper.length > 0) return undefined;
  const isOwn = host === 'registry.ollama.ai';
  const parts = [isOwn ? '' : host, isOwn && namespace === 'library' ? '' : namespace, model];
  const name = `${parts.filter(part => part !== '').join('/')}:${basename(path)}`;
  return name.length > nameLengthMax ? undefined : printableName(name);
}

function blobPath(root: string, hash: string): string {
  return join(root, 'blobs', `sha256-${hash}`);
}

/** Settings like `{"temperature": 0.7, "stop": ["…"]}`; nothing when they are not that. */
function parseParameters(text: string | undefined): ModelPreset['parameters'] {
  return parseObject(text ?? '{}') ?? {}; // the model runs without them
}
