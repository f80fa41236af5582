import test from 'ava';
import fc from 'fast-check';
import {node} from '../../../test/support/builders.ts';
import {Fault} from './fault.ts';
import {formatInvite, parseInvite} from './invite.ts';

const invite = {
  inviter: node('A'),
  addresses: ['/ip4/192.168.1.7/tcp/4328', '/dns/home.example/tcp/4328'],
  secret: Uint8Array.from({length: 16}, (_, index) => index * 16),
};

test('a code is one word that says whom to ask, where, and with what secret', t => {
  const code = formatInvite(invite);
  t.regex(code, /^hearsay1-[\w-]+$/u);
  t.deepEqual(parseInvite(code), invite);
});

test('a code may be pasted with spaces and line breaks in it', t => {
  const code = formatInvite(invite);
  t.deepEqual(parseInvite(`  ${code.slice(0, 40)}\n  ${code.slice(40)} \n`), invite);
});

test('a code that was cut, mistyped, or is none is refused with what is wrong', t => {
  const code = formatInvite(invite);
  const swapped = `${code.slice(0, 30)}${code[30] === 'A' ? 'B' : 'A'}${code.slice(31)}`;
  for (const [text, what] of [
    ['hello', /begins with hearsay1-/u],
    ['', /begins with hearsay1-/u],
    [code.slice(0, -3), /damaged or incomplete/u],
    [swapped, /damaged or incomplete/u],
    [`${code}!`, /damaged or incomplete/u],
    [`hearsay1-${'A'.repeat(10_000)}`, /damaged or incomplete/u],
  ] as const) {
    const error = t.throws(() => parseInvite(text), {instanceOf: Fault}, text.slice(0, 50));
    t.is(error.code, 'BAD_REQUEST');
    t.regex(error.message, what);
  }
});

test('any text is an invite or a fault', t => {
  fc.assert(
    fc.property(fc.string({unit: 'grapheme'}), fc.boolean(), (text, withPrefix) => {
      try {
        return typeof parseInvite(withPrefix ? `hearsay1-${text}` : text) === 'object';
      } catch (error) {
        return error instanceof Fault;
      }
    }),
  );
  t.pass();
});
