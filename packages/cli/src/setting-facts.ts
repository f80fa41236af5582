import type {SettingKey} from './settings.ts';

/** What the manual says of every setting. */

interface SettingFacts {
  /** Environment variable. */
  readonly variable: string;
  /** Flag of `hearsay serve`, for the manual. */
  readonly flag: string | undefined;
  /** What holds when nobody gives it, for the manual. */
  readonly otherwise: string;
  /** A value as it could stand in the file, in TOML. */
  readonly example: string;
  /** For the manual: what it is for, in sentences. */
  readonly about: string;
}

export const settingFacts: Readonly<Record<SettingKey, SettingFacts>> = {
  name: {
    variable: 'HEARSAY_NAME',
    flag: '--name NAME',
    otherwise: 'the host name without its domain',
    example: '"spark"',
    about: 'What people call this node. It need not be unique; the id of a node is its key.',
  },
  data_dir: {
    variable: 'HEARSAY_DATA_DIR',
    flag: '--data-dir DIR',
    otherwise: '`$XDG_DATA_HOME/hearsay`, mostly `~/.local/share/hearsay`',
    example: '"~/hearsay"',
    about: 'Holds the key of the node, known digests and the lock. Two daemons on one machine need two of them.',
  },
  log_level: {
    variable: 'HEARSAY_LOG_LEVEL',
    flag: '--log-level LEVEL',
    otherwise: '`info`',
    example: '"info"',
    about: '`debug`, `info`, `warn` or `error`. The log goes to stderr, as JSON lines where that is no terminal.',
  },
  'gateway.host': {
    variable: 'HEARSAY_GATEWAY_HOST',
    flag: '--gateway HOST:PORT',
    otherwise: '`127.0.0.1`',
    example: '"127.0.0.1"',
    about:
      'Address on which HTTP clients are served. One that other machines reach needs a key (`hearsay key create`), `gateway.keys`, or `gateway.insecure`.',
  },
  'gateway.port': {
    variable: 'HEARSAY_GATEWAY_PORT',
    flag: '--gateway HOST:PORT',
    otherwise: '`4327`, or the next free one when it is taken',
    example: '4327',
    about: 'A port that is given is used or refused, never replaced by another. `0` takes any free one.',
  },
  'gateway.require_key': {
    variable: 'HEARSAY_REQUIRE_KEY',
    flag: undefined,
    otherwise: '`false`',
    example: 'false',
    about:
      'Programs of this machine need a key too, also the commands: they send that of `HEARSAY_KEY`. Behind a proxy on this machine, say yes.',
  },
  'gateway.insecure': {
    variable: 'HEARSAY_GATEWAY_INSECURE',
    flag: undefined,
    otherwise: '`false`',
    example: 'false',
    about: 'Lets every machine that reaches `gateway.host` use this node without a key.',
  },
  'gateway.ollama_port': {
    variable: 'HEARSAY_OLLAMA_PORT',
    flag: undefined,
    otherwise: '`false`',
    example: 'false',
    about:
      'Serves port 11434 too, where clients look for Ollama. When it is taken, the node runs without it and says so.',
  },
  'gateway.hostnames': {
    variable: 'HEARSAY_GATEWAY_HOSTNAMES',
    flag: undefined,
    otherwise: 'none',
    example: '["llm.example"]',
    about: 'Names under which clients call this node, beside localhost, `*.local`, `*.internal` and private addresses.',
  },
  'gateway.cors_origins': {
    variable: 'HEARSAY_CORS_ORIGINS',
    flag: undefined,
    otherwise: 'none',
    example: '["https://chat.example"]',
    about: 'Web pages of other machines that may call this node; `*` is every page.',
  },
  'gateway.keys': {
    variable: 'HEARSAY_KEYS',
    flag: undefined,
    otherwise: 'none: whoever reaches the gateway may use it',
    example: '["a-long-random-text"]',
    about:
      'Keys of which every HTTP client must send one, as `Authorization: Bearer KEY` or `x-api-key: KEY`. The commands of ' +
      'this program send the first one. Needed when `gateway.host` is not loopback.',
  },
  'gateway.aliases': {
    variable: 'HEARSAY_ALIASES',
    flag: undefined,
    otherwise: 'none',
    example: '["claude-haiku-*=qwen3-4b", "claude-local=qwen3-32b"]',
    about:
      'Further names for models, as `NAME=MODEL`; a name that ends with `*` stands for all that begin so. Those without `*` ' +
      'are listed as models. For clients that ask for a name of their own.',
  },
  'gateway.body_limit_mb': {
    variable: 'HEARSAY_BODY_LIMIT_MB',
    flag: undefined,
    otherwise: '`64`',
    example: '64',
    about: 'Largest request in MiB, as sent and as decoded. 64 is also the most: other nodes take no more.',
  },
  'gateway.tls_cert': {
    variable: 'HEARSAY_TLS_CERT',
    flag: undefined,
    otherwise: 'none: the gateway speaks plain HTTP',
    example: '"~/tls/cert.pem"',
    about: 'Certificate chain in PEM, with which the gateway speaks HTTPS only. Needs `gateway.tls_key`.',
  },
  'gateway.tls_key': {
    variable: 'HEARSAY_TLS_KEY',
    flag: undefined,
    otherwise: 'none',
    example: '"~/tls/key.pem"',
    about: 'Private key of `gateway.tls_cert`, in PEM.',
  },
  'mesh.name': {
    variable: 'HEARSAY_MESH',
    flag: '--mesh NAME',
    otherwise: '`home`',
    example: '"home"',
    about: 'Only nodes with the same mesh name meet.',
  },
  'mesh.port': {
    variable: 'HEARSAY_MESH_PORT',
    flag: '--mesh-port PORT',
    otherwise: '`4328`, or the next free one when it is taken',
    example: '4328',
    about: 'TCP port for the other nodes. `0` takes any free one.',
  },
  'mesh.peers': {
    variable: 'HEARSAY_PEERS',
    flag: '--peer ADDR (again for each)',
    otherwise: 'none: nodes on one LAN find each other',
    example: '["spark", "10.0.0.5:4328"]',
    about:
      'Nodes to call where multicast does not reach: `host`, `host:port`, `[v6]:port` or a multiaddr, as an array or with ' +
      'commas between. Naming a peer on one side is enough. `HEARSAY_PEERS=` (empty) leaves those of the file out for one start.',
  },
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
  'models.aliases': {
    variable: 'HEARSAY_ALIASES',
    flag: undefined,
    otherwise: 'none',
    example: '{"gpt-4o" = "unsloth/Qwen3-8B-GGUF:Q4_K_M"}',
    about:
      'Further names for models, for requests that enter at this node: an alias and what it means, a name in any form that ' +
      'a request may use. In the environment: `ALIAS=NAME,…`. An alias goes before a model of the same name.',
  },
  'models.demo': {
    variable: 'HEARSAY_DEMO',
    flag: undefined,
    otherwise: '`true`',
    example: 'true',
    about: 'Offers the toy model that ships with hearsay while this machine has no other.',
  },
  'routing.policy': {
    variable: 'HEARSAY_POLICY',
    flag: undefined,
    otherwise: '`auto`',
    example: '"prefer=spark"',
    about:
      'Where requests run for which nobody wishes anything else: `auto`, `prefer=NODE,…` or `pin=NODE,…`, and `;exclude=NODE,…`.',
  },
  'journal.days': {
    variable: 'HEARSAY_JOURNAL_DAYS',
    flag: undefined,
    otherwise: '`14`',
    example: '14',
    about: 'How long `hearsay requests` and `hearsay why` remember. What requests and answers say is never kept.',
  },
  'journal.megabytes': {
    variable: 'HEARSAY_JOURNAL_MEGABYTES',
    flag: undefined,
    otherwise: '`200`',
    example: '200',
    about: 'How large the journal may become. The oldest requests go first.',
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
    about: 'Requests that one model answers at the same time. Each slot has a context of its own.',
  },
  'engine.context': {
    variable: 'HEARSAY_CONTEXT',
    flag: undefined,
    otherwise: '`8192`',
    example: '8192',
    about: 'Most tokens of context that one slot gets; less when the model was trained for less.',
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
    about: 'Further arguments for llama-server.',
  },
  'engines.external': {
    variable: 'HEARSAY_EXTERNAL_ENGINES',
    flag: undefined,
    otherwise: 'none',
    example: '[{name = "vllm", url = "http://127.0.0.1:8000/v1", key_env = "VLLM_KEY"}]',
    about:
      'OpenAI-compatible servers that somebody else runs, such as vLLM or LM Studio: their models are offered as loaded while they ' +
      'answer. `key_env` names the environment variable with the key; `slots` (4), `context` (8192) and `capabilities` ' +
      '(chat, completion, tools) are told where they differ. In the environment: `NAME=URL,NAME=URL`.',
  },
};
