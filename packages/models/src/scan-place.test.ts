import {rm, symlink, mkdir, readFile, writeFile} from 'node:fs/promises';
import {basename, join} from 'node:path';
import test from 'ava';
import type {ExecutionContext} from 'ava';
import {isProven} from '@hearsay/core';
import type {ModelStore, StoredModel} from '@hearsay/core';
import {countFile, makeModelPlace, named, otherFile, shardFiles, tinyFile} from '../../../test/support/model-place.ts';
import {until, untilProven} from '../../../test/support/model-place.ts';
import * as trees from '../../../test/support/store-trees.ts';
import type {StoreKind} from './scan-place.ts';
import {startModelStore} from './start-model-store.ts';

const [shard1, shard2] = shardFiles;

async function open(t: ExecutionContext, kind: StoreKind, fill: (root: string) => Promise<void>) {
  const {models: root, config, environment, warnings} = await makeModelPlace(t, []);
  await fill(root);
  const store = await startModelStore({...config, folders: [], stores: [{kind, path: root}]}, environment);
  t.teardown(() => store[Symbol.asyncDispose]());
  return {root, store, warnings};
}

function names(store: ModelStore): readonly (readonly string[])[] {
  return store.list().map(model => model.names);
}

function digestOf(model: StoredModel | undefined): string | undefined {
  return model?.digest.toString();
}

test('a Hugging Face cache: models are called after repository and quantization, and blob names are their digests', async t => {
  const [count, other] = [await tinyFile(countFile), await tinyFile(otherFile)];
  const {store} = await open(t, 'huggingface', async hub => {
    const main = {repository: 'Org/Tiny-GGUF', commit: 'c1'};
    await trees.putIntoHub(hub, {...main, file: 'Tiny-f16.gguf', source: count});
    await trees.putIntoHub(hub, {...main, file: 'sub/Tiny-UD-Q4_K_XL.gguf', source: other});
    await trees.put(join(hub, 'datasets--x--y', 'snapshots', 'c', 'data.gguf'), 'no model');
  });
  t.deepEqual(names(store), [
    ['Org/Tiny-GGUF:F16', 'Tiny-f16'],
    ['Org/Tiny-GGUF:Q4_K_XL', 'Org/Tiny-GGUF:UD-Q4_K_XL', 'Tiny-UD-Q4_K_XL'],
  ]);
  // Without any hashing: at once.
  t.is(digestOf(store.list()[0]), `sha256:${await trees.hashOf(count)}`);
});

test('R75, R76: shards in a Hugging Face cache are one model under the names of the links', async t => {
  const {root, store} = await open(t, 'huggingface', async hub => {
    for (const file of shardFiles) {
      await trees.putIntoHub(hub, {
        repository: 'o/split',
        commit: 'c',
        file: `F16/${file}`,
        source: await tinyFile(file),
      });
    }
  });
  const [model] = store.list();
  const folder = join(root, 'models--o--split', 'snapshots', 'c', 'F16');
  t.deepEqual(model?.files, [join(folder, shard1), join(folder, shard2)]);
  t.is(model?.problem, undefined);
  t.deepEqual(model?.names, ['o/split:tiny-split', 'tiny-split']);
});

test('an older revision in a Hugging Face cache does not take the name of the newest', async t => {
  const {store} = await open(t, 'huggingface', async hub => {
    const file = {repository: 'o/r', file: 'm-Q8_0.gguf'};
    await trees.putIntoHub(hub, {...file, commit: '0123456789', source: await tinyFile(countFile)});
    await trees.putIntoHub(hub, {...file, commit: 'abcdef', source: await tinyFile(otherFile)});
    await trees.setMain(hub, 'o/r', 'abcdef\n');
  });
  t.deepEqual(names(store), [['o/r:Q8_0', 'm-Q8_0'], ['o/r:Q8_0#01234567']]);
  t.is(digestOf(named(store, 'o/r:Q8_0')), `sha256:${await trees.hashOf(await tinyFile(otherFile))}`);
});

test('two models of one repository with one quantization are called after their files', async t => {
  const {store} = await open(t, 'huggingface', async hub => {
    const main = {repository: 'o/r', commit: 'c'};
    await trees.putIntoHub(hub, {...main, file: 'a-Q8_0.gguf', source: await tinyFile(countFile)});
    await trees.putIntoHub(hub, {...main, file: 'b-Q8_0.gguf', source: await tinyFile(otherFile)});
  });
  t.deepEqual(names(store), [
    ['o/r:a-Q8_0', 'a-Q8_0'],
    ['o/r:b-Q8_0', 'b-Q8_0'],
  ]);
});

test('R79: a projector belongs to the models of its repository, lets them see, and counts for their digest', async t => {
  const {root, store} = await open(t, 'huggingface', async hub => {
    const projector = join(hub, 'p.bin');
    await trees.writeProjector(projector);
    const main = {repository: 'o/see', commit: 'c'};
    await trees.putIntoHub(hub, {...main, file: 'see-F16.gguf', source: await tinyFile(countFile)});
    await trees.putIntoHub(hub, {...main, file: 'mmproj-model-f16.gguf', source: projector});
  });
  const [model, ...others] = store.list();
  t.deepEqual(others, []);
  t.is(basename(model?.projector ?? ''), 'mmproj-model-f16.gguf');
  t.is(model?.files.at(-1), model?.projector);
  t.true(model?.capabilities.includes('vision'));
  t.true(model !== undefined && isProven(model.digest));
  t.not(digestOf(model), `sha256:${await trees.hashOf(await tinyFile(countFile))}`);

  await rm(join(root, 'models--o--see', 'snapshots', 'c', 'mmproj-model-f16.gguf'));
  await until('the model is blind', () => store.list().some(({projector}) => projector === undefined));
  t.false(store.list()[0]?.capabilities.includes('vision'));
  t.is(digestOf(store.list()[0]), `sha256:${await trees.hashOf(await tinyFile(countFile))}`);
});

test('a file whose bytes are not what its blob name promises is found out in the background', async t => {
  const {root, store} = await open(t, 'huggingface', async hub => {
    await trees.putIntoHub(hub, {repository: 'o/r', commit: 'c', file: 'm.gguf', source: await tinyFile(countFile)});
    const blob = join(hub, 'models--o--r', 'blobs', await trees.hashOf(await tinyFile(countFile)));
    const bytes = await readFile(blob);
    bytes.writeUInt8(bytes.readUInt8(bytes.length - 1) ^ 1, bytes.length - 1);
    await writeFile(blob, bytes);
  });
  await until('it is damaged', () => store.list()[0]?.problem?.startsWith('damaged') === true);
  const promised = await trees.hashOf(await tinyFile(countFile));
  t.false(
    store.list().some(model => model.problem === undefined && model.digest.includes(promised)),
    root,
  );
});

const library = 'registry.ollama.ai/library';

test('an Ollama store: tags are names, blobs are digests, and tags of one blob are one model', async t => {
  const count = {file: await tinyFile(countFile)};
  const {root, store} = await open(t, 'ollama', async folder => {
    await trees.putIntoOllama(folder, {tag: `${library}/tiny/3b`, layers: {model: count}});
    await trees.putIntoOllama(folder, {tag: `${library}/tiny/latest`, layers: {model: count}});
    await trees.putIntoOllama(folder, {
      tag: 'registry.ollama.ai/ada/bot/v1',
      layers: {model: {file: await tinyFile(otherFile)}},
    });
    await trees.putIntoOllama(folder, {tag: 'hf.co/org/repo/Q8_0', layers: {model: count}});
  });
  t.deepEqual(names(store), [['ada/bot:v1'], ['tiny:latest', 'hf.co/org/repo:Q8_0', 'tiny:3b']]);
  const hash = await trees.hashOf(count.file);
  const model = named(store, 'tiny:3b');
  t.is(digestOf(model), `sha256:${hash}`);
  t.deepEqual(model?.files, [join(root, 'blobs', `sha256-${hash}`)]);
  t.is(model?.problem, undefined);
});

test('what a tag of Ollama adds to the weights is remembered under its name', async t => {
  const model = {file: await tinyFile(countFile)};
  const {store} = await open(t, 'ollama', async folder => {
    await trees.putIntoOllama(folder, {tag: `${library}/plain/latest`, layers: {model}});
    const layers = {
      model,
      template: {text: '{{ .Prompt }}'},
      system: {text: 'You are Mario.'},
      params: {text: '{"temperature": 0.3, "stop": ["<end>"]}'},
    };
    await trees.putIntoOllama(folder, {tag: `${library}/mario/latest`, layers});
  });
  t.is(store.list().length, 1);
  const preset = {name: 'mario:latest', template: '{{ .Prompt }}', system: 'You are Mario.'};
  t.deepEqual(store.list()[0]?.presets, [{...preset, parameters: {temperature: 0.3, stop: ['<end>']}}]);
});

test('new manifests of Ollama go before legacy ones, also as links to blobs and as lists for several runners', async t => {
  const [count, other] = [{file: await tinyFile(countFile)}, {file: await tinyFile(otherFile)}];
  const {store} = await open(t, 'ollama', async folder => {
    await trees.putIntoOllama(folder, {tag: `${library}/a/latest`, layers: {model: count}});
    await trees.putIntoOllama(folder, {tag: `${library}/a/latest`, folder: 'manifests-v2', layers: {model: other}});

    const manifest = await trees.putBlob(folder, Buffer.from(await trees.ollamaManifest(folder, {model: count})));
    await mkdir(join(folder, 'manifests-v2', library, 'linked'));
    const blob = join(folder, 'blobs', manifest.replace(':', '-'));
    await symlink(blob, join(folder, 'manifests-v2', library, 'linked', 'latest'));

    const mlx = {runner: 'mlx', format: 'safetensors', digest: `sha256:${'0'.repeat(64)}`};
    const both = {manifests: [mlx, {runner: 'llamacpp', format: 'gguf', digest: manifest}]};
    await trees.put(join(folder, 'manifests-v2', library, 'listed', 'latest'), JSON.stringify(both));
    await trees.put(join(folder, 'manifests-v2', library, 'mlx', '8b'), JSON.stringify({manifests: [mlx]}));
  });
  t.is(digestOf(named(store, 'a:latest')), `sha256:${await trees.hashOf(other.file)}`);
  t.deepEqual(named(store, 'linked:latest')?.names, ['linked:latest', 'listed:latest']);
  t.regex(named(store, 'mlx:8b')?.problem ?? '', /without a GGUF file/u);
});

test('a projector of Ollama belongs to its tag, and a missing blob makes the tag incomplete', async t => {
  const model = {file: await tinyFile(countFile)};
  const {root, store} = await open(t, 'ollama', async folder => {
    await trees.writeProjector(join(folder, 'p'));
    const layers = {model, projector: {file: join(folder, 'p')}};
    await trees.putIntoOllama(folder, {tag: `${library}/see/latest`, layers});
    await trees.putIntoOllama(folder, {tag: `${library}/blind/latest`, layers: {model}});
    await trees.putIntoOllama(folder, {tag: `${library}/lora/latest`, layers: {model, adapter: {text: 'x'}}});
    await trees.put(join(folder, 'manifests', library, 'torn', 'latest'), '{"layers": [');
  });
  t.true(named(store, 'see:latest')?.capabilities.includes('vision'));
  t.false(named(store, 'blind:latest')?.capabilities.includes('vision'));
  t.regex(named(store, 'lora:latest')?.problem ?? '', /adapter/u);
  t.regex(named(store, 'torn:latest')?.problem ?? '', /manifest is damaged/u);

  await rm(join(root, 'blobs', `sha256-${await trees.hashOf(model.file)}`));
  await until('it is incomplete', () => named(store, 'see:latest')?.problem?.startsWith('incomplete') === true);
  t.true(store.list().every(({problem}) => problem !== undefined));
});

test('a tag that Ollama adds later is found, and one that it removes is gone', async t => {
  const model = {file: await tinyFile(countFile)};
  const {root, store} = await open(t, 'ollama', async () => {});
  t.deepEqual(store.list(), []);
  await trees.putIntoOllama(root, {tag: `${library}/a/latest`, layers: {model}});
  await until('it is found', () => store.list().some(({problem}) => problem === undefined));
  await trees.putIntoOllama(root, {tag: `${library}/b/latest`, layers: {model}});
  await until('it has both names', () => store.list()[0]?.names.length === 2);
  await rm(join(root, 'manifests', library, 'a'), {recursive: true});
  await until('it has one name', () => store.list()[0]?.names.length === 1);
  t.deepEqual(names(store), [['b:latest']]);
});

test('an LM Studio folder: models are called after publisher, model and quantization', async t => {
  const {store} = await open(t, 'lmstudio', async root => {
    await trees.copyInto(join(root, 'lmstudio-community', 'Tiny-GGUF'), 'Tiny-Q4_0.gguf', await tinyFile(otherFile));
    await trees.writeProjector(join(root, 'lmstudio-community', 'Tiny-GGUF', 'mmproj-Tiny-f16.gguf'));
  });
  await untilProven(store);
  t.deepEqual(names(store), [['lmstudio-community/Tiny-GGUF:Q4_0', 'Tiny-Q4_0']]);
  t.true(store.list()[0]?.capabilities.includes('vision'));
});

test("llama.cpp's old cache: flat files, each with the projector of its repository", async t => {
  const {store} = await open(t, 'llama.cpp', async root => {
    await trees.copyInto(root, 'org_see-GGUF_see-Q8_0.gguf', await tinyFile(countFile));
    await trees.copyInto(root, 'org_other_other-Q4_0.gguf', await tinyFile(otherFile));
    await trees.writeProjector(join(root, 'org_see-GGUF_mmproj-model-f16.gguf'));
    await trees.copyInto(join(root, 'models--o--r', 'snapshots', 'c'), 'deep.gguf', await tinyFile(otherFile));
  });
  t.deepEqual(names(store), [['org_other_other-Q4_0'], ['org_see-GGUF_see-Q8_0']]);
  t.deepEqual(
    store.list().map(({capabilities}) => capabilities.includes('vision')),
    [false, true],
  );
});

test("hearsay's own store: blobs by sha256, and links to them that keep their names", async t => {
  const {store} = await open(t, 'hearsay', async root => {
    for (const file of shardFiles) {
      const digest = await trees.putBlob(root, await readFile(await tinyFile(file)));
      const folder = join(root, 'org', 'split');
      await mkdir(folder, {recursive: true});
      await symlink(join('..', '..', 'blobs', digest.replace(':', '-')), join(folder, file));
    }
  });
  t.deepEqual(names(store), [['org/split:tiny-split', 'tiny-split']]);
  t.true(store.list().every(({digest, problem}) => isProven(digest) && problem === undefined));
});

test('projectors without a model and draft models are listed with the reason', async t => {
  const {store} = await open(t, 'folder', async root => {
    await trees.writeProjector(join(root, 'mmproj-lonely.gguf'));
    await trees.copyInto(root, 'mtp-tiny.gguf', await tinyFile(countFile));
    await trees.copyInto(root, 'qwen.gguf', await tinyFile(countFile));
    await trees.copyInto(root, 'gemma.gguf', await tinyFile(otherFile));
  });
  t.regex(named(store, 'mmproj-lonely')?.problem ?? '', /no model that it belongs to/u);
  t.regex(named(store, 'mtp-tiny')?.problem ?? '', /draft model/u);
  t.is(named(store, 'qwen')?.projector, undefined);
  t.is(named(store, 'qwen')?.problem, undefined);
});

test('stores that are not there are missed in silence, and one that comes later is found', async t => {
  const {models, config, environment, warnings} = await makeModelPlace(t, []);
  const path = join(models, 'later');
  await using store = await startModelStore({...config, stores: [{kind: 'lmstudio', path}]}, environment);
  t.deepEqual(warnings, []);
  await trees.copyInto(join(path, 'a', 'b'), countFile, await tinyFile(countFile));
  await until('it is found', () => store.list().length === 1);
  t.deepEqual(warnings, []);
});
