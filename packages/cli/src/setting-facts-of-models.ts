import type {SettingFacts} from './setting-facts.ts';
import type {SettingKey} from './settings.ts';

/** Of models and engines. */
export const modelFacts: Readonly<
  Record<Extract<SettingKey, `${'models' | 'engine' | 'engines'}.${string}`>, SettingFacts>
> = {
  'models.folders': {
    variable: 'HEARSAY_MODELS',
    flag: '--models DIR…',
    otherwise: 'none',
    example: '["~/models"]',
    about: 'Folders with `.gguf` files. They are read where they lie and never changed.',
  },
  'models.stores': {
    variable: 'HEARSAY_STORES',
    flag: undefined,
    otherwise: '`["huggingface", "ollama", "lmstudio", "llama.cpp"]`',
    example: '["huggingface", "ollama=/srv/ollama/models"]',
    about:
      'Programs whose models are offered too, read where they lie: in the folders that these programs use and that their ' +
      'own variables (`HF_HOME`, `HF_HUB_CACHE`, `OLLAMA_MODELS`, `LLAMA_CACHE`) say, or in the folder after `=`. `[]` leaves ' +
      'all of them out.',
  },
  'models.demo': {
    variable: 'HEARSAY_DEMO',
    flag: undefined,
    otherwise: '`true`',
    example: 'true',
    about: 'Offers the toy model that ships with hearsay while this machine has no other.',
  },
  'engine.path': {
    variable: 'HEARSAY_ENGINE',
    flag: '--engine PATH',
    otherwise: 'found on `PATH`, else installed',
    example: '"/usr/local/bin/llama-server"',
    about: 'The llama-server to run.',
  },
  'engine.slots': {
    variable: 'HEARSAY_SLOTS',
    flag: undefined,
    otherwise: '`4`',
    example: '4',
    about:
      'Most requests that one model answers at the same time. Each slot has a context of its own; where memory is short ' +
      'there are fewer, so that each keeps 8192 tokens.',
  },
  'engine.context': {
    variable: 'HEARSAY_CONTEXT',
    flag: undefined,
    otherwise: 'what fits of 32768 tokens for all slots together, but 8192 for each',
    example: '8192',
    about:
      'Most tokens of context that one slot gets; less when the model was trained for less, or when memory is short.',
  },
  'engine.memory': {
    variable: 'HEARSAY_MEMORY',
    flag: undefined,
    otherwise: 'what the machine has',
    example: '"16GiB"',
    about:
      'What all loaded models together may take: `16GiB`, `16GB` or bytes. Models are unloaded to make room, the least ' +
      'worth first, and never one that is in use.',
  },
  'engine.keep_alive': {
    variable: 'HEARSAY_KEEP_ALIVE',
    flag: undefined,
    otherwise: '`5m`',
    example: '"5m"',
    about:
      'How long a model stays loaded without requests: `5m`, `1h30m`, `300` (seconds), `0` (not at all), `-1` (for ever).',
  },
  'engine.keep_alive_min': {
    variable: 'HEARSAY_KEEP_ALIVE_MIN',
    flag: undefined,
    otherwise: '`0`',
    example: '"0"',
    about: 'The least that a request can ask for with `keep_alive`; less counts as this.',
  },
  'engine.keep_alive_max': {
    variable: 'HEARSAY_KEEP_ALIVE_MAX',
    flag: undefined,
    otherwise: '`-1` (no limit)',
    example: '"1h"',
    about: 'The most that a request can ask for with `keep_alive`, also one of another node; more counts as this.',
  },
  'engine.preload': {
    variable: 'HEARSAY_PRELOAD',
    flag: undefined,
    otherwise: 'none',
    example: '["qwen3:4b"]',
    about: 'Models that this node loads at its start and keeps loaded. Other nodes do not load them for that.',
  },
  'engine.remote_control': {
    variable: 'HEARSAY_REMOTE_CONTROL',
    flag: undefined,
    otherwise: '`true`',
    example: 'true',
    about: 'Whether other nodes of the mesh may load and stop models here and read the logs of engines.',
  },
  'engine.threads': {
    variable: 'HEARSAY_THREADS',
    flag: undefined,
    otherwise: 'as llama-server chooses',
    example: '8',
    about: 'CPU threads for one model.',
  },
  'engine.extra_args': {
    variable: 'HEARSAY_ENGINE_ARGS',
    flag: undefined,
    otherwise: 'none',
    example: '["--flash-attn", "on"]',
    about:
      'Further arguments for llama-server. Those that hearsay gives itself are refused, such as `--port`, `-c` and `-np`.',
  },
  'engines.external': {
    variable: 'HEARSAY_EXTERNAL_ENGINES',
    flag: undefined,
    otherwise: 'none',
    example: '[{name = "vllm", url = "http://127.0.0.1:8000/v1", key_env = "VLLM_KEY"}]',
    about:
      'OpenAI-compatible servers that somebody else runs, such as vLLM or LM Studio: their models are offered as loaded while they ' +
      'answer. `key_env` names the environment variable with the key; `slots` (4), `context` (8192) and `capabilities` ' +
      '(chat, completion, tools) are told where they differ: pictures need `vision` there, recordings `audio`, ' +
      'embeddings `embeddings`. In the environment: `NAME=URL,NAME=URL`.',
  },
};
