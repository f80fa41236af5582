import test from 'ava';
import {node} from '../../../test/support/builders.ts';
import {decisionFacts} from '../../../test/support/journal-events.ts';
import {candidatesFor} from './candidates.ts';
import {compactFacts, decide} from './decide.ts';
import {rank} from './rank.ts';
import {emptyView} from './view.ts';

test('S97: the facts that are kept are fewer, and decide the same', t => {
  const facts = decisionFacts('r');
  const compact = compactFacts(facts);
  t.deepEqual(decide(compact).ranked, decide(facts).ranked);
  t.deepEqual(
    compact.self.models.map(({names}) => names[0]),
    ['m'],
  );
  t.is(compact.nodes.get(node('B'))?.inventory?.models.length, 1);
  t.is(compact.nodes.get(node('B'))?.signed.payload.length, 0);
});

test('candidates that look their facts up are ranked as those that are copied', t => {
  const {asked, question, self, nodes, reach} = decisionFacts('r');
  const copied = rank(candidatesFor(question, self, {...emptyView, nodes}, reach), asked);
  t.deepEqual(copied, decide(decisionFacts('r')).ranked);
});

test('S77: a node in quarantine is asked when nobody else is left', t => {
  const facts = decisionFacts('r');
  const {best} = decide({...facts, question: {...facts.question, tried: new Set([node('A'), node('B')])}});
  t.like(best, {node: node('C'), place: 0});
});
