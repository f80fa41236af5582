import test from 'ava';
import {judgeExit} from './judge-exit.ts';
import type {ExitFacts} from './judge-exit.ts';

function exit(facts: Partial<ExitFacts>): ReturnType<typeof judgeExit> {
  return judgeExit({code: 1, signal: null, lines: [], files: [], ...facts});
}

const damaged = [
  "0.00.030.932 E llama_model_load: error loading model: tensor 'output.weight' data is not within the file bounds",
  '0.00.030.933 E llama_model_load_from_file_impl: failed to load model',
  '0.00.031.362 E srv  llama_server: exiting due to model loading error',
];

test('the reason of a damaged file is the line that names the cause, not the last one', t => {
  const {reason, final} = exit({lines: damaged});
  t.is(
    reason,
    "llama-server exited with code 1: error loading model: tensor 'output.weight' data is not within the file bounds",
  );
  t.true(final);
});

test('R78: the reason names the file without its folder', t => {
  const lines = [
    "E gguf_init_from_file: failed to open GGUF file '/home/ann/models/a.gguf' (No such file or directory)",
  ];
  const {reason, lines: shown} = exit({lines, files: ['/home/ann/models/a.gguf']});
  t.is(reason, "llama-server exited with code 1: failed to open GGUF file 'a.gguf' (No such file or directory)");
  t.notRegex(shown.join('\n'), /ann/u);
});

test('a bad flag is final', t => {
  t.like(exit({lines: ['error: invalid argument: --nonsense']}), {
    final: true,
    reason: 'llama-server exited with code 1: error: invalid argument: --nonsense',
  });
});

test('R85: a port that another process took is told apart from every other failure', t => {
  const lines = ["E srv start: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 4000"];
  t.like(exit({lines}), {portTaken: true, final: false});
  t.false(exit({lines: damaged}).portTaken);
});

test('want of memory is not final, because memory may come back', t => {
  t.false(exit({lines: ['E llama_model_load: error loading model: unable to allocate CUDA0 buffer']}).final);
  t.false(exit({lines: ['E llama_init: failed to allocate buffer for kv cache']}).final);
});

test('a projector that cannot be used is final, and its reason is the one that names the cause', t => {
  const lines = [
    '0.00.032.896 E mtmd_get_memory_usage: error: Failed to load CLIP model from mmproj.gguf',
    "0.00.057.225 E clip_init: failed to load model '/m/mmproj.gguf': load_hparams: unknown projector type:",
    "0.00.057.285 E srv    load_model: failed to load multimodal model, '/m/mmproj.gguf'",
  ];
  const end = judgeExit({code: 1, signal: null, lines, files: ['/m/m.gguf', '/m/mmproj.gguf']});
  t.true(end.final);
  t.regex(
    end.reason,
    /exited with code 1: failed to load model 'mmproj\.gguf': load_hparams: unknown projector type:$/u,
  );
});

test('an exit without a word is not final', t => {
  t.like(exit({}), {final: false, reason: 'llama-server exited with code 1'});
});

test('signals are named', t => {
  t.regex(exit({code: null, signal: 'SIGKILL', lines: damaged}).reason, /was killed \(SIGKILL\).*memory$/u);
  t.regex(exit({code: null, signal: 'SIGSEGV'}).reason, /crashed \(SIGSEGV\)$/u);
  t.regex(
    exit({code: null, signal: 'SIGABRT', lines: ['a.c:1: GGML_ASSERT(n > 0) failed']}).reason,
    /SIGABRT\): GGML_ASSERT/u,
  );
  t.false(exit({code: null, signal: 'SIGSEGV', lines: damaged}).final);
});
