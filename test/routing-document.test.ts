import {readFileSync} from 'node:fs';
import {costTerms} from '@hearsay/core';
import test from 'ava';
import {seedTable} from './support/seed-cases.ts';

const document = readFileSync(new URL('../docs/routing.md', import.meta.url), 'utf8');

test('docs/routing.md prints the table of the seed rule that the tests go by', t => {
  t.true(document.includes(seedTable()), `the table should be:\n${seedTable()}`);
});

test('docs/routing.md explains every term of the cost', t => {
  t.deepEqual(
    costTerms.filter(term => !document.includes(`| \`${term}\` |`)),
    [],
  );
});
