import test from 'ava';
import {progressLines} from './progress-lines.ts';

const compile = (done: number): {step: 'compile'; done: number; total: number; note: string} => ({
  step: 'compile',
  done,
  total: 300,
  note: `file-${done}.cpp`,
});

test('where nobody looks, every step gets a line and a long one about ten', t => {
  const written: string[] = [];
  const terminal = {out: () => t.fail(), error: (text: string) => void written.push(text), isInteractive: false};
  using lines = progressLines(terminal);
  lines.show({step: 'unpack', done: 0, total: 1, note: 'llama.cpp'});
  for (let done = 0; done <= 300; done += 1) lines.show(compile(done));
  lines.show({step: 'link', done: 0, total: 1, note: 'llama-server'});
  t.is(written.length, 13);
  t.deepEqual(
    [written[0], written[1], written[2], written.at(-1)],
    ['unpack llama.cpp\n', 'compile 0/300 file-0.cpp\n', 'compile 30/300 file-30.cpp\n', 'link llama-server\n'],
  );
});

test('on a terminal one line is rewritten and gone in the end', t => {
  const written: string[] = [];
  const terminal = {out: () => t.fail(), error: (text: string) => void written.push(text), isInteractive: true};
  const lines = progressLines(terminal);
  lines.show(compile(1));
  lines.show(compile(2));
  lines[Symbol.dispose]();
  t.deepEqual(written, ['\r\u001B[Kcompile 1/300 file-1.cpp', '\r\u001B[Kcompile 2/300 file-2.cpp', '\r\u001B[K']);
});
