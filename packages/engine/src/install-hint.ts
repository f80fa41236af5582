/** How a person gets an engine; part of every message that says there is none. */
export const installHint: string = [
  'Install llama.cpp yourself: `brew install llama.cpp` (macOS, Linux), `winget install llama.cpp` (Windows), or',
  'unpack a file from https://github.com/ggml-org/llama.cpp/releases and put its folder on PATH. Or let hearsay do it:',
  '`hearsay engine install`; building it needs a C++ compiler and git (Debian, Ubuntu: `apt install g++ git`).',
].join('\n');
