import {createHash} from 'node:crypto';
import {copyFile, mkdir, readFile, symlink, writeFile} from 'node:fs/promises';
import {dirname, join, relative} from 'node:path';
import {bool, encodeGguf, tensor, text} from '../../scripts/tiny-models/gguf-writer.ts';

/** Lays out models as the programs do that people have them from. All paths are made as needed. */

/** One file of a Hugging Face repository: a blob under its hash, and a link to it in the snapshot. */
export async function putIntoHub(
  hub: string,
  {repository, commit, file, source}: {repository: string; commit: string; file: string; source: string},
): Promise<string> {
  const folder = join(hub, `models--${repository.replaceAll('/', '--')}`);
  const blob = join(folder, 'blobs', await hashOf(source));
  const link = join(folder, 'snapshots', commit, file);
  await mkdir(dirname(blob), {recursive: true});
  await copyFile(source, blob);
  await mkdir(dirname(link), {recursive: true});
  await symlink(relative(dirname(link), blob), link);
  return link;
}

/** Which commit a repository's branch `main` is. */
export async function setMain(hub: string, repository: string, commit: string): Promise<void> {
  await put(join(hub, `models--${repository.replaceAll('/', '--')}`, 'refs', 'main'), commit);
}

export interface OllamaTag {
  /** Path below the folder of manifests: `registry.ollama.ai/library/MODEL/TAG`. */
  readonly tag: string;
  readonly folder?: 'manifests' | 'manifests-v2';
  /** Layers by the end of their media type: files by their paths, texts as they are. */
  readonly layers: Readonly<Record<string, {readonly file: string} | {readonly text: string}>>;
}

/** One tag of Ollama: a blob for each layer, and a manifest that names them. */
export async function putIntoOllama(root: string, {tag, folder = 'manifests', layers}: OllamaTag): Promise<void> {
  await put(join(root, folder, tag), await ollamaManifest(root, layers));
}

/** The text of a manifest whose layers are put in as blobs. */
export async function ollamaManifest(root: string, layers: OllamaTag['layers']): Promise<string> {
  const described = [];
  for (const [kind, content] of Object.entries(layers)) {
    const bytes = 'file' in content ? await readFile(content.file) : Buffer.from(content.text);
    const digest = await putBlob(root, bytes);
    described.push({mediaType: `application/vnd.ollama.image.${kind}`, digest, size: bytes.length});
  }
  return JSON.stringify({schemaVersion: 2, config: {}, layers: described});
}

export async function putBlob(root: string, bytes: Buffer): Promise<string> {
  const hash = createHash('sha256').update(bytes).digest('hex');
  await put(join(root, 'blobs', `sha256-${hash}`), bytes);
  return `sha256:${hash}`;
}

/** A file as projectors are: enough of a header to be known as one, nothing that an engine could load. */
export async function writeProjector(path: string): Promise<void> {
  const metadata = new Map([
    ['general.architecture', text('clip')],
    ['general.type', text('mmproj')],
    ['clip.has_vision_encoder', bool(true)],
  ]);
  await put(path, encodeGguf({metadata, tensors: [tensor('v', [32], new Float32Array(32), 'F16')]}));
}

export async function put(path: string, content: string | Uint8Array): Promise<void> {
  await mkdir(dirname(path), {recursive: true});
  await writeFile(path, content);
}

export async function copyInto(folder: string, name: string, source: string): Promise<void> {
  await mkdir(folder, {recursive: true});
  await copyFile(source, join(folder, name));
}

export async function hashOf(path: string): Promise<string> {
  return createHash('sha256')
    .update(await readFile(path))
    .digest('hex');
}
