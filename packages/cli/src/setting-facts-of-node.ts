import type {SettingFacts} from './setting-facts.ts';
import type {SettingKey} from './settings.ts';

/** Of this node, its gateway and its mesh. */
export const nodeFacts: Readonly<
  Record<Exclude<SettingKey, `${'models' | 'engine' | 'engines' | 'routing'}.${string}`>, SettingFacts>
> = {
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
  drain_limit: {
    variable: 'HEARSAY_DRAIN_LIMIT',
    flag: undefined,
    otherwise: '4s',
    example: '"30s"',
    about:
      'How long requests may go on after SIGTERM, while the node takes no new ones; Ctrl-C and a second signal do not wait. ' +
      'Whoever sends the signal must wait a few seconds longer than this, as `docker stop` does without a setting.',
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
      'Address on which HTTP clients are served. One that other machines reach needs `gateway.keys`, or `gateway.insecure`.',
  },
  'gateway.port': {
    variable: 'HEARSAY_GATEWAY_PORT',
    flag: '--gateway HOST:PORT',
    otherwise: '`4327`, or the next free one when it is taken',
    example: '4327',
    about: 'A port that is given is used or refused, never replaced by another. `0` takes any free one.',
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
      'are listed as models. For clients that ask for a name of their own. `*=MODEL` takes every name that no model has, ' +
      'which is otherwise an error.',
  },
  'gateway.default_model': {
    variable: 'HEARSAY_DEFAULT_MODEL',
    flag: undefined,
    otherwise: 'the only model that can answer the request; where there are several, that is an error',
    example: '"qwen3-4b"',
    about: 'The model for requests that name none.',
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
  'mesh.relay': {
    variable: 'HEARSAY_RELAY',
    flag: '--relay',
    otherwise: '`false`',
    example: 'false',
    about:
      'Passes connections on between members of a closed mesh that cannot reach each other. For a machine that all can reach.',
  },
  'mesh.announce': {
    variable: 'HEARSAY_ANNOUNCE',
    flag: '--announce ADDR (again for each)',
    otherwise: 'the addresses of its interfaces',
    example: '["home.example:4328"]',
    about:
      'Where others reach this node from outside, such as a port that the router forwards: `host`, `host:port` or a multiaddr.',
  },
  'mesh.role': {
    variable: 'HEARSAY_ROLE',
    flag: '--role ROLE',
    otherwise: '`both`',
    example: '"both"',
    about: '`use`: ask other nodes and run nothing for them. `serve`: run for others and never ask them. `both`: both.',
  },
  'gateway.require_key': {
    variable: 'HEARSAY_REQUIRE_KEY',
    flag: undefined,
    otherwise: '`false`',
    example: 'false',
    about:
      'Programs of this machine need a key too, also the commands: they send that of `HEARSAY_KEY`. Behind a proxy on this machine, say yes.',
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
};
