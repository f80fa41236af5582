import test from 'ava';
import {formatInvite, isNodeId} from '@hearsay/core';
import {drawQr} from './draw-qr.ts';

/** Two modules, one above the other, in each character. */
const halves: Readonly<Record<string, readonly [boolean, boolean]>> = {
  ' ': [false, false],
  '▀': [true, false],
  '▄': [false, true],
  '█': [true, true],
};

/** True where the drawing is light. */
function modulesOf(drawing: string): readonly (readonly boolean[])[] {
  const lines = drawing.trimEnd().split('\n');
  return lines.flatMap(line => {
    const pairs = line.split('').map(character => halves[character] ?? [false, false]);
    return [pairs.map(([upper]) => upper), pairs.map(([, lower]) => lower)];
  });
}

/** The square in each of three corners by which cameras find the code: dark, a light ring in it, a dark core. */
const finder = ['#######', '#.....#', '#.###.#', '#.###.#', '#.###.#', '#.....#', '#######'];

test('an invite with all that it can hold is drawn as a QR code that fits a terminal of 80 columns', async t => {
  const inviter = '12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN';
  if (!isNodeId(inviter)) return t.fail();
  const addresses = Array.from({length: 6}, (_, index) => `/ip4/192.168.100.${index + 100}/tcp/43${index}28`);
  const code = formatInvite({inviter, addresses, secret: new Uint8Array(16).fill(7)});
  const modules = modulesOf(await drawQr(code));
  const width = modules[0]?.length ?? 0;
  t.true(width <= 80, `${width} columns`);
  const quiet = 2;
  const corner = (top: number, left: number): readonly string[] =>
    finder.map((row, y) =>
      row
        .split('')
        .map((_, x) => (modules[top + y]?.[left + x] === true ? '.' : '#'))
        .join(''),
    );
  for (const [top, left] of [
    [quiet, quiet],
    [quiet, width - quiet - finder.length],
    [width - quiet - finder.length, quiet],
  ] as const) {
    t.deepEqual(corner(top, left), finder);
  }
});
