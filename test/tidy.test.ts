import {globSync, readFileSync} from 'node:fs';
import test from 'ava';

/** Who may import whom. Everything else is a mistake; change this table in a commit of its own. */
const siblings: Readonly<Record<string, readonly string[]>> = {
  core: [],
  mesh: ['core'],
  engine: ['core'],
  models: ['core'],
  gateway: ['core'],
  cluster: ['core'],
  cli: ['core', 'mesh', 'engine', 'models', 'gateway', 'cluster'],
};
const coreLibraries = ['zod', 'cborg'];

interface File {
  readonly path: string;
  readonly owner: string;
  readonly text: string;
}

const files: readonly File[] = globSync('packages/*/src/**/*.ts').map(path => ({
  path,
  owner: path.split('/')[1] ?? '',
  text: readFileSync(path, 'utf8'),
}));
const outside: readonly File[] = globSync('{test,scripts}/**/*.{ts,mjs}').map(path => ({
  path,
  owner: '',
  text: readFileSync(path, 'utf8'),
}));
const isTest = ({path}: File): boolean => path.endsWith('.test.ts');
const sources = files.filter(file => !isTest(file));

function specifiers(text: string): readonly string[] {
  const found = text.matchAll(/^\s*(?:import|export)\b(?:[^'"]*?\bfrom)?\s*['"]([^'"]+)['"]/gmu);
  return [...found].map(([, name]) => name ?? '');
}

function wrongImport({owner}: File, name: string, forTests: boolean): string | undefined {
  const sibling = /^@hearsay\/([^/]+)/u.exec(name)?.[1];
  if (sibling !== undefined && siblings[owner]?.includes(sibling) !== true)
    return `${owner} must not import ${sibling}`;
  if (name.endsWith('/index.ts')) return `import the file, not ${name}`;
  if (/packages\//u.test(name) || (!forTests && name.startsWith('../../'))) return `${name} reaches out of the package`;
  const isLibrary = !name.startsWith('.') && sibling === undefined;
  if (owner === 'core' && isLibrary && !forTests && !coreLibraries.includes(name))
    return `core must not import ${name}`;
  return undefined;
}

test('imports point at core, and nobody reaches past the door of a package', t => {
  const wrong = files.flatMap(file =>
    specifiers(file.text).flatMap(name => {
      const problem = wrongImport(file, name, isTest(file));
      return problem === undefined ? [] : [`${file.path}: ${problem}`];
    }),
  );
  t.true(files.length > 40, 'the files were found');
  t.deepEqual(wrong, []);
});

test('S9: what chooses a node needs no tokenizer, no etcd, no Kubernetes and no feed: only itself and Node', t => {
  const allowed = [...coreLibraries, '@hearsay/core'];
  const wrong = sources
    .filter(({owner}) => owner === 'core' || owner === 'cluster')
    .flatMap(({path, text}) => specifiers(text).map(name => ({path, name})))
    .filter(({name}) => !/^(?:\.\.?\/|node:)/u.test(name) && !allowed.includes(name));
  t.deepEqual(wrong, []);
});

test('time, chance, the console and the environment enter only through cli', t => {
  const banned =
    /\bDate\.now\(|\bnew Date\(\)|\bMath\.random\(|(?<![.\w])set(?:Timeout|Interval)\((?!\): this)|\bconsole\.|\bprocess\.env\b/u;
  const wrong = sources
    .filter(({owner}) => owner !== 'cli')
    .flatMap(({path, text}) =>
      text.split('\n').flatMap((line, index) => (banned.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : [])),
    );
  t.deepEqual(wrong, []);
});

/** The formatter wraps code; what stays long is a string that would read worse in pieces. */
const isTooLong = (line: string): boolean =>
  line.length > 120 && !/['"`]|^\s*\/.*\/u?[,;]$/u.test(line) && !isTable(line);
const isTable = (line: string): boolean => / {4}/u.test(line.trim());

test('no file is longer than 300 lines, no line longer than 120 columns unless a string makes it so', t => {
  const wrong = [...files, ...outside].flatMap(({path, text}) => {
    const lines = text.split('\n');
    const long = lines.flatMap((line, index) =>
      isTooLong(line) ? [`${path}:${index + 1}: ${line.length} columns`] : [],
    );
    return [...(lines.length > 301 ? [`${path}: ${lines.length - 1} lines`] : []), ...long];
  });
  t.deepEqual(wrong, []);
});

test('names are kebab-case, nothing is left over, and every TODO names its issue', t => {
  const leftOver = /\b(?:FIXME|XXX)\b|\.only\(|\bdebugger\b|^\s*(?:\/\/|\*).*\bTODO\b(?! #\d)/mu;
  const self = /tidy\.test\.ts$/u;
  const wrong = [...files, ...outside].filter(
    ({path, text}) => (!self.test(path) && leftOver.test(text)) || !/\/[a-z0-9-]+(?:\.test)?\.(?:ts|mjs)$/u.test(path),
  );
  t.deepEqual(
    wrong.map(({path}) => path),
    [],
  );
});

test('no package has a default export, and every index.ts opens with what the package does', t => {
  const wrong = sources.filter(
    ({path, text}) => /^export default/mu.test(text) || (path.endsWith('/index.ts') && !text.startsWith('/**')),
  );
  t.deepEqual(
    wrong.map(({path}) => path),
    [],
  );
});
