import type {Command, Option} from 'commander';
import type {Query} from './query-commands.ts';
import {systemClock} from './system.ts';

const changes = [
  ['drain', 'take no new requests; running ones end'],
  ['undrain', 'take requests again after a drain'],
  ['pause', 'the owner uses the machine: take no new requests and unload what is idle'],
  ['resume', 'take requests again after a pause'],
] as const;

/** `hearsay drain`, `undrain`, `pause`, `resume` and `policy`. What they need is loaded when one of them runs. */
export function addOperatorCommands(
  program: Command,
  host: Option,
  queryFor: (command: Command) => Promise<Query>,
): void {
  const commands = async () => import('./operator-commands.ts');
  for (const [name, about] of changes) {
    const command = program.command(name).description(about).addOption(host);
    if (name === 'drain') command.option('--hand-over', 'load elsewhere what is loaded only here, and wait for that');
    command.action(async (options: {readonly handOver?: boolean}) => {
      const query = await queryFor(command);
      await (await commands()).changeNode(name, query);
      if (options.handOver !== true) return;
      const {handOver} = await import('./hand-over.ts');
      await handOver(query, systemClock);
    });
  }
  const policy = program.command('policy').description('where requests of a model, workload or key may run');
  const set = policy
    .command('set')
    .description('for requests that enter at this node, whatever they ask for themselves')
    .argument('<subject>', 'a model, a workload, or key:NAME')
    .argument('<parts...>', 'prefer=NODE[,NODE…], pin=NODE[,NODE…], exclude=NODE[,NODE…]')
    .addOption(host);
  set.action(async (subject: string, parts: string[]) =>
    (await commands()).setPolicy(subject, parts, await queryFor(set)),
  );
  const list = policy
    .command('ls')
    .description('list them')
    .addOption(host)
    .option('--json', "the daemon's answer as JSON");
  list.action(async () => (await commands()).listPolicies(await queryFor(list)));
  const remove = policy.command('rm').description('take one away').argument('<subject>').addOption(host);
  remove.action(async (subject: string) => (await commands()).removePolicy(subject, await queryFor(remove)));
}
