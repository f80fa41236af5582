import type {Command} from 'commander';
import {InvalidArgumentError, Option} from 'commander';
import {z} from 'zod';
import type {Query} from './query-commands.ts';
import {systemClock} from './system.ts';

const targetFlags = z.object({node: z.string().optional()});
const loadFlags = targetFlags.extend({
  context: z.number().optional(),
  slots: z.number().optional(),
  keep: z.boolean().default(false),
  copies: z.number().optional(),
});
const logFlags = targetFlags.extend({follow: z.boolean().default(false)});

export type QueryFor = (command: Command) => Promise<Query>;

/** Adds the commands that do something with engines. What they need is loaded when one of them runs. */
export function addControl(program: Command, host: () => Option, queryFor: QueryFor): void {
  const node = (): Option => new Option('--node <node>', 'only on this node (default: wherever it concerns)');
  const commands = async () => import('./control-commands.ts');

  const load = program
    .command('load')
    .description('load a model before anybody asks for it, on the node that ranks best')
    .argument('<model>')
    .addOption(node())
    .option('--context <tokens>', 'context of one slot (default: as that node has set)', positiveInteger)
    .option('--slots <count>', 'requests at the same time (default: as that node has set)', positiveInteger)
    .option('--copies <count>', 'on so many nodes, the best ones (default: 1)', positiveInteger)
    .option('--keep', 'keep it loaded until it is stopped')
    .addOption(host());
  load.action(async (model: string) => {
    const {node: where, context, slots, keep, copies} = loadFlags.parse(load.opts());
    const {loadModel} = await commands();
    await loadModel({model, node: where}, {context, slots, keep, copies}, await queryFor(load), systemClock);
  });

  const stop = program
    .command('stop')
    .description('unload a model, on whichever nodes it is loaded')
    .argument('<model>')
    .addOption(node())
    .addOption(host());
  stop.action(async (model: string) => {
    const {stopModel} = await commands();
    await stopModel({model, node: targetFlags.parse(stop.opts()).node}, await queryFor(stop));
  });

  const show = program
    .command('show')
    .description('show one model: what it is, where it is, and how its engines are')
    .argument('<model>')
    .addOption(node())
    .addOption(host())
    .option('--json', "the daemon's answer as JSON");
  show.action(async (model: string) => {
    const {showModel} = await commands();
    await showModel({model, node: targetFlags.parse(show.opts()).node}, await queryFor(show));
  });

  const logs = program
    .command('logs')
    .description('print what the engine of a model has written')
    .argument('<model>')
    .option('-f, --follow', 'go on with what it writes')
    .addOption(node())
    .addOption(host());
  logs.action(async (model: string) => {
    const {node: where, follow} = logFlags.parse(logs.opts());
    const {showLogs} = await commands();
    await showLogs({model, node: where}, follow, await queryFor(logs), systemClock);
  });
}

/** Reads an argument of the command line. */
export function positiveInteger(text: string): number {
  if (!/^[1-9]\d{0,8}$/u.test(text)) throw new InvalidArgumentError('Write a whole number above 0.');
  return Number(text);
}
