import test from 'ava';
import fc from 'fast-check';
import {node} from '../../../test/support/builders.ts';
import {Fault} from './fault.ts';
import type {NodeId} from './ids.ts';
import {exchangeBytesMax, encodeExchange} from './exchange-codec.ts';
import {revocationsMax, statementBytesMax} from './limits.ts';
import {addRevocation, isRevocation, judgeStanding, shouldRenew} from './membership.ts';
import type {Checked, Pass, Role} from './membership.ts';
import {decodeMembersAnswer, decodeMembersQuestion, decodeStatement} from './membership-codec.ts';
import {encodeMembersAnswer, encodeMembersQuestion, encodeStatement} from './membership-codec.ts';

const founder = node('F');
const keeper = node('K');
const member = node('M');
const hourMs = 3_600_000;

function pass(signer: NodeId, of: NodeId, role: Role = 'member', changes: Partial<Pass> = {}): Checked<Pass> {
  const statement = {kind: 'pass', mesh: founder, node: of, name: 'n', role, expiresAtMs: 1000 * hourMs} as const;
  return {signer, statement: {...statement, ...changes}};
}

function judge(chain: readonly Checked[], changes: Partial<Parameters<typeof judgeStanding>[0]> = {}) {
  return judgeStanding({mesh: founder, node: member, chain, revoked: new Set(), wallMs: 0, ...changes});
}

test('a pass of the founder, or of a keeper that has one, makes a member', t => {
  t.like(judge([pass(founder, member)]), {kind: 'member', role: 'member'});
  t.like(judge([pass(keeper, member, 'keeper'), pass(founder, keeper, 'keeper')]), {kind: 'member', role: 'keeper'});
  t.like(judge([], {node: founder}), {kind: 'member', role: 'keeper', expiresAtMs: Infinity});
});

test('a chain with any wrong link makes a stranger', t => {
  const chains: readonly (readonly Checked[])[] = [
    [pass(keeper, member)],
    [pass(keeper, member), pass(founder, keeper)], // that one may not invite
    [pass(founder, keeper, 'keeper')], // of somebody else
    [pass(founder, member, 'member', {mesh: keeper})],
    [pass(member, member, 'keeper')],
    [pass(keeper, member), pass(member, keeper, 'keeper')],
    [{signer: founder, statement: {kind: 'revocation', mesh: founder, node: member, name: ''}}],
  ];
  for (const chain of chains) t.deepEqual(judge(chain), {kind: 'stranger', code: 'forged'});
  t.deepEqual(judge([]), {kind: 'stranger', code: 'none'});
});

test('a chain that is longer than it may be is not even looked at', t => {
  const long = [pass(keeper, member), pass(node('L'), keeper, 'keeper'), pass(node('P'), node('L'), 'keeper')];
  t.is(judge([...long, pass(founder, node('P'), 'keeper')]).kind, 'stranger');
});

test('the first pass of a chain to end ends membership, and clocks may differ by an hour', t => {
  const chain = [pass(keeper, member), pass(founder, keeper, 'keeper', {expiresAtMs: 10 * hourMs})];
  t.like(judge(chain, {wallMs: 11 * hourMs}), {kind: 'member', expiresAtMs: 10 * hourMs});
  t.deepEqual(judge(chain, {wallMs: 13 * hourMs}), {kind: 'stranger', code: 'expired'});
  t.is(judge(chain, {wallMs: -hourMs}).kind, 'member');
});

test('who was revoked is out, and so is whoever has only its word', t => {
  const chain = [pass(keeper, member), pass(founder, keeper, 'keeper')];
  t.deepEqual(judge(chain, {revoked: new Set([member])}), {kind: 'stranger', code: 'revoked'});
  t.deepEqual(judge(chain, {revoked: new Set([keeper])}), {kind: 'stranger', code: 'revoked'});
  t.is(judge(chain, {revoked: new Set([node('X')])}).kind, 'member');
});

test('only keepers revoke, nobody revokes the founder, and it counts also after the pass of the keeper has ended', t => {
  const of = (signer: NodeId, out: NodeId): Checked => ({
    signer,
    statement: {kind: 'revocation', mesh: founder, node: out, name: ''},
  });
  const keeperChain = [pass(founder, keeper, 'keeper', {expiresAtMs: 0})];
  t.true(isRevocation(of(founder, member), [], founder));
  t.true(isRevocation(of(keeper, member), keeperChain, founder));
  t.false(isRevocation(of(keeper, founder), keeperChain, founder));
  t.false(isRevocation(of(keeper, member), [pass(founder, keeper)], founder));
  t.false(isRevocation(of(keeper, member), [], founder));
  t.false(isRevocation(of(founder, member), [], keeper));
});

test('a pass is renewed after a third of its life', t => {
  t.false(shouldRenew(90, 90, 29));
  t.true(shouldRenew(90, 90, 31));
  t.false(shouldRenew(Infinity, 90, 1e15));
});

test('statements, questions and answers come back as they were', t => {
  const revocation = {kind: 'revocation', mesh: founder, node: member, name: 'spark'} as const;
  const {statement} = pass(founder, member, 'keeper');
  for (const each of [statement, revocation]) t.deepEqual(decodeStatement(encodeStatement(each)), each);
  const signed = {signer: founder, payload: Uint8Array.from([1]), signature: Uint8Array.from([2])};
  for (const question of [
    {kind: 'join', secret: Uint8Array.from([7]), name: 'spark'} as const,
    {kind: 'renew'} as const,
    {kind: 'leave'} as const,
    {kind: 'adopt', mesh: founder, chain: [signed]} as const,
    {kind: 'revoke', revocations: [{statement: signed, chain: [signed]}]} as const,
  ]) {
    t.deepEqual(decodeMembersQuestion(encodeMembersQuestion(question)), question);
  }
  const addresses = [{node: member, addresses: ['/ip4/10.0.0.2/tcp/4328']}];
  for (const answer of [
    {kind: 'welcome', mesh: founder, meshName: 'home', chain: [signed], revocations: [], addresses} as const,
    {kind: 'done'} as const,
    {kind: 'no', reason: 'used'} as const,
  ]) {
    t.deepEqual(decodeMembersAnswer(encodeMembersAnswer(answer)), answer);
  }
});

test('any bytes about membership give a fault and nothing else', t => {
  const samples = [
    encodeStatement(pass(founder, member).statement),
    encodeMembersQuestion({kind: 'join', secret: new Uint8Array(16), name: 'spark'}),
    encodeMembersAnswer({kind: 'no', reason: 'used'}),
  ];
  const decoders = [decodeStatement, decodeMembersQuestion, decodeMembersAnswer];
  const isHandled = (bytes: Uint8Array): boolean =>
    decoders.every(decode => {
      try {
        return typeof decode(bytes) === 'object';
      } catch (error) {
        return error instanceof Fault;
      }
    });
  fc.assert(fc.property(fc.uint8Array({maxLength: 300}), isHandled));
  fc.assert(
    fc.property(fc.constantFrom(...samples), fc.nat(), fc.integer({min: 0, max: 255}), (sample, at, value) =>
      isHandled(sample.map((byte, index) => (index === at % sample.length ? value : byte))),
    ),
  );
  t.pass();
});

test('a keeper that was stolen cannot fill the list of revocations so that the founder has none left', t => {
  const by = (signer: NodeId) => ({
    statement: {signer, payload: new Uint8Array(), signature: new Uint8Array()},
    chain: [],
  });
  const full = Array.from({length: revocationsMax}, () => by(keeper));
  t.is(addRevocation(full, by(keeper), founder), undefined);
  const [added, own] = [addRevocation(full, by(founder), founder), by(founder)];
  t.is(added?.length, revocationsMax);
  t.is(added?.at(-1)?.statement.signer, founder);
  t.is(
    addRevocation(
      Array.from({length: revocationsMax}, () => own),
      by(founder),
      founder,
    ),
    undefined,
  );
  t.is(addRevocation([], own, founder)?.length, 1);
});

test('all revocations that a mesh remembers, with chains of long names, leave room in an exchange', t => {
  const payload = encodeStatement({
    kind: 'pass',
    mesh: founder,
    node: member,
    name: 'n'.repeat(200),
    role: 'member',
    expiresAtMs: 1,
  });
  t.true(payload.length < statementBytesMax);
  const statement = {signer: keeper, payload, signature: new Uint8Array(64)};
  const revocation = {statement, chain: [statement, statement]};
  const revocations = Array.from({length: revocationsMax}, () => revocation);
  const bytes = encodeExchange({mesh: 'home', name: '', records: [], addresses: [], revocations});
  t.true(bytes.length < exchangeBytesMax / 2, `${bytes.length} bytes`);
});
