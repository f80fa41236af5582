import test from 'ava';
import {catchAll, namedAliases, resolveAlias} from './aliases.ts';

const aliases = {'claude-*': 'big', 'claude-haiku-*': 'small', 'Claude-Haiku-9': 'exact'};

const table: readonly (readonly [asked: string, model: string])[] = [
  ['claude-opus-4', 'big'],
  ['claude-haiku-4', 'small'],
  ['CLAUDE-HAIKU-9', 'exact'],
  ['qwen3', 'qwen3'],
  ['toString', 'toString'],
  ['', ''],
];
for (const [asked, model] of table) {
  test(`${JSON.stringify(asked)} means ${JSON.stringify(model)}: the longest alias that fits, else itself`, t => {
    t.is(resolveAlias(asked, aliases), model);
  });
}

test('a star alone is no alias, but what is left for a name that nobody knows', t => {
  t.is(resolveAlias('gpt-4', {'*': 'any'}), 'gpt-4');
  t.is(catchAll({'*': 'any'}), 'any');
  t.is(catchAll(aliases), undefined);
});

test('only an alias without a star is a name to list', t => {
  t.deepEqual(namedAliases(aliases), [['Claude-Haiku-9', 'exact']]);
});
