import test from 'ava';
import {digest, node} from '../../../test/support/builders.ts';
import {arrived, ended} from '../../../test/support/journal-events.ts';
import {Fault} from './fault.ts';
import {newRequestId} from './ids.ts';
import type {Outcome, RequestEvent} from './journal-port.ts';
import {outcomeOf, reasonOf, summarize} from './summarize.ts';

const id = newRequestId({next: () => 0, bytes: length => new Uint8Array(length)});

test('law 10: every way to end has exactly one of five names', t => {
  const ends: readonly (readonly [unknown, number, Outcome])[] = [
    [undefined, 200, 'finished'],
    [undefined, 400, 'refused'],
    [undefined, 500, 'failed'],
    [new Fault('CANCELLED', 'gone'), 200, 'cancelled'],
    [new DOMException('x', 'AbortError'), 200, 'cancelled'],
    [new Fault('INTERRUPTED', 'broke off'), 200, 'interrupted'],
    [new Fault('NO_CANDIDATE', 'nobody'), 200, 'refused'],
    [new Fault('ENGINE_FAILED', 'died'), 200, 'failed'],
    [new Error('a bug'), 200, 'failed'],
  ];
  for (const [error, status, outcome] of ends) t.is(outcomeOf(error, status).outcome, outcome);
});

test('what llama-server said is not kept, for it quotes what it read', t => {
  const engine = new Fault('ENGINE_FAILED', "parse error near 'my secret'", {details: {status: 500}});
  t.is(reasonOf(engine), 'llama-server answered 500');
  t.is(reasonOf(new Fault('ENGINE_FAILED', `${engine.message} (tried: x)`, {cause: engine})), reasonOf(engine));
});

test('an event of a request that never arrived here makes no line', t => {
  t.is(summarize(undefined, id, ended('finished'), moment), undefined);
});

test('S81, S97: the line tells what really ran and which attempt it was', t => {
  const started: RequestEvent = {
    kind: 'started',
    attempt: 2,
    node: node('B'),
    nodeName: 'b',
    digest: digest('a'),
    model: 'm:1',
    status: 200,
  };
  const came = summarize(undefined, id, arrived('m'), moment);
  const line = summarize(came, id, started, {...moment, sinceMs: 40, change: 2});
  t.like(line, {id, asked: 'm', model: 'm:1', nodeName: 'b', digest: digest('a'), attempts: 2, firstByteMs: 40});
  t.like(summarize(line, id, ended('interrupted'), {...moment, sinceMs: 90}), {outcome: 'interrupted', totalMs: 90});
});

const moment = {wallMs: 5, sinceMs: 0, change: 1};
