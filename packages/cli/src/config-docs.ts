import {capabilities} from '@hearsay/core';
import type {SettingKey} from './settings.ts';
import {settingFacts} from './setting-facts.ts';
import {settingKeys} from './settings.ts';

/** The manual of all settings as Markdown: `docs/configuration.md`. */
export function configDocs(): string {
  return `# Settings

<!-- Made by scripts/write-config-docs.ts from packages/cli/src/setting-facts.ts; do not edit. -->

Nothing needs to be set. A setting comes from, the strongest first: a flag of \`hearsay serve\`, an environment variable, the
config file, the default. The config file is TOML at \`$XDG_CONFIG_HOME/hearsay/config.toml\` (mostly
\`~/.config/hearsay/config.toml\`), or wherever \`--config FILE\` or \`HEARSAY_CONFIG\` says. An unknown key is an error. Relative
paths in the file start at its folder, others at the working folder; \`~/\` is the home folder. An empty environment variable
counts as none, except that an empty list is an empty list.

\`\`\`toml
${exampleFile()}
\`\`\`

${settingKeys.map(describe).join('\n\n')}

## Single models

A table for each, by any of its names, in any case. All keys may be left out.

\`\`\`toml
[models."Qwen3-8B-Q4_K_M"]
context = 32768                        # exactly so many tokens for each slot; loaded so or not at all
slots = 2                              # exactly so many
keep = true                            # never unloaded, neither to make room nor for want of requests
extra_arguments = ["-ctk", "q8_0"]     # after those of engine.extra_args
\`\`\`

## Workloads

A workload is a name that applications ask for as the \`model\`, so that they need not know models or machines. Only the
config file has them, a table each:

\`\`\`toml
[workloads.summarise]
models = ["qwen3:8b", "sha256:9f86d081884c", "llama-3*"] # what may run it, best first: names, digests, patterns
quants = ["Q4_K_M", "Q8_0"] # of these quantizations only
needs = ["chat", "tools"] # ${capabilities.join(', ')}
context = 16384 # least context that the model was made for, in tokens
policy = "prefer=spark" # as \`routing.policy\`
parameters = {temperature = 0.2} # where the request does not say otherwise
keys = ["notes"] # only applications with one of these keys; without the line everybody
reassign = "exact" # when a node fails before any output: to the same bytes only, or to any \`accepted\` model
\`\`\`

Who wishes where a request runs, the strongest first: the owner of the node where it enters (\`hearsay policy set\`), the header
\`x-hearsay-policy\`, the \`provider\` object of the body (\`order\`, \`only\`, \`ignore\`, \`allow_fallbacks\`), \`model@node\`, the workload, the
key of the application, \`routing.policy\`. Excluded nodes add up.

## Hosted services

A service on the internet with an OpenAI-compatible API may stand in when no node of the mesh can run a request, or when
each would let it wait too long. Only requests that are \`local-preferred\` ever leave: by their header
\`x-hearsay-policy: local-preferred\`, or by the policy of a workload, a key, the owner or \`routing.policy\`. Everything else
is \`local-required\` and never does. A pinned request never leaves. Only the config file has services, a table each; a key
that names nodes must name the service too:

\`\`\`toml
[hosted.acme]
url = "https://api.example.com/v1" # as the service's manual gives it
key_env = "ACME_KEY" # the environment variable with the key
models = {"qwen3:8b" = "their-small-model", "llama*" = "their-model"} # names or patterns of ours, each with theirs
tokens_per_month = 1_000_000 # prompts and answers, by UTC months; must be given
tokens_per_request = 16384 # also limits the answer; three bytes of a prompt count as a token until it is known
limit_field = "max_tokens" # or "max_completion_tokens", where the service wants that
wait = "30s" # leave when every node would let it wait longer for a slot
\`\`\`

The answer names the service in \`x-hearsay-node\` (\`acme (hosted)\`), the journal in \`hearsay why\`. What this month has cost is in
\`hosted.json\` in the data folder.

## Other environment variables

- \`HEARSAY_HOST\`: which daemon \`hearsay status\`, \`ps\` and the like ask, as their flag \`--host\`: \`host\`, \`:port\`, \`host:port\` or a
  URL with a prefix. Otherwise the one that runs on the data folder of this user, else \`127.0.0.1:4327\`.
- \`HEARSAY_KEY\`: the key that those commands send to a daemon that is named by \`--host\` or \`HEARSAY_HOST\`. To the daemon of
  this user they send the first of \`gateway.keys\`.
- \`HEARSAY_CONFIG\`: the config file, as \`--config\`.
- \`XDG_CONFIG_HOME\`, \`XDG_DATA_HOME\`, \`XDG_CACHE_HOME\`: where the standard folders are.
`;
}

function exampleFile(): string {
  let section = '';
  return settingKeys
    .flatMap(key => {
      const [name, before] = key.includes('.') ? [afterDot(key), key.slice(0, key.indexOf('.'))] : [key, ''];
      const line = `${name} = ${settingFacts[key].example}`;
      if (before === section) return [line];
      section = before;
      return ['', `[${section}]`, line];
    })
    .join('\n');
}

const afterDot = (key: string): string => key.slice(key.indexOf('.') + 1);

function describe(key: SettingKey): string {
  const {about, variable, flag, otherwise} = settingFacts[key];
  const ways = flag === undefined ? `\`${variable}\`` : `\`${flag}\`, \`${variable}\``;
  return `### \`${key}\`\n\n${about}\n\nAlso: ${ways}. Default: ${otherwise}.`;
}
