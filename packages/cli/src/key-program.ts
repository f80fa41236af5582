import {Fault} from '@hearsay/core';
import type {Command, Option} from 'commander';
import {z} from 'zod';
import type {Query} from './query-commands.ts';

const flags = z.object({
  models: z.string().optional(),
  workloads: z.string().optional(),
  nodes: z.string().optional(),
  policies: z.string().optional(),
  policy: z.string().optional(),
  rate: z.string().optional(),
  admin: z.boolean().optional(),
});

/** `hearsay key create`, `ls` and `revoke`. What they need is loaded when one of them runs. */
export function addKeyCommands(program: Command, host: Option, queryFor: (command: Command) => Promise<Query>): void {
  const commands = async () => import('./key-commands.ts');
  const key = program.command('key').description('keys of the applications that may use this node');
  const create = key
    .command('create')
    .description('make one and print its secret, once')
    .argument('<name>', 'what people call the application')
    .option('--models <list>', 'only these models; * stands for any characters')
    .option('--workloads <list>', 'only these workloads')
    .option('--nodes <list>', 'only these nodes may run its requests')
    .option('--policies <list>', 'what its requests may ask for: auto, prefer, pin')
    .option('--policy <policy>', 'where its requests run unless they say otherwise')
    .option('--rate <count>', 'so many requests a minute')
    .option('--admin', 'may use the admin API, also from other machines')
    .addOption(host)
    .option('--json', "the daemon's answer as JSON");
  create.action(async (name: string) => {
    const {rate, admin, policy, ...lists} = flags.parse(create.opts());
    const rights = Object.fromEntries(
      Object.entries(lists).flatMap(([right, text]) => (text === undefined ? [] : [[right, listOf(text)] as const])),
    );
    const perMinute = rate === undefined ? undefined : rateOf(rate);
    const {createKey} = await commands();
    await createKey({name, ...rights, policy, perMinute, admin}, await queryFor(create));
  });
  const list = key
    .command('ls')
    .description('list them, without their secrets')
    .addOption(host)
    .option('--json', "the daemon's answer as JSON");
  list.action(async () => (await commands()).listKeys(await queryFor(list)));
  const revoke = key.command('revoke').description('take one back').argument('<name>').addOption(host);
  revoke.action(async (name: string) => (await commands()).revokeKey(name, await queryFor(revoke)));
}

/** An empty text is an empty list, which allows nothing. */
function listOf(text: string): readonly string[] {
  return text
    .split(',')
    .map(part => part.trim())
    .filter(part => part !== '');
}

function rateOf(text: string): number {
  if (/^[1-9]\d{0,8}$/u.test(text)) return Number(text);
  throw new Fault('BAD_REQUEST', `--rate must be a whole number above 0, not ${JSON.stringify(text)}`);
}
