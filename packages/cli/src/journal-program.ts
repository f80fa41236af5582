import type {Command, Option} from 'commander';
import {z} from 'zod';
import {positiveInteger} from './control-program.ts';
import type {Query} from './query-commands.ts';
import {systemClock} from './system.ts';

const requestsFlags = z.object({
  follow: z.boolean().default(false),
  lines: z.number().optional(),
});
const routeFlags = z.object({
  promptBytes: z.string().optional(),
  policy: z.string().optional(),
  needs: z.string().optional(),
});

/** `hearsay requests`, `why`, `replay` and `route`. What they need is loaded when one of them runs. */
export function addJournalCommands(
  program: Command,
  host: Option,
  queryFor: (command: Command) => Promise<Query>,
): void {
  const commands = async () => import('./journal-commands.ts');
  const asking = (command: Command): Command => command.addOption(host).option('--json', "the daemon's answer as JSON");

  const requests = asking(program.command('requests'))
    .description('list what happened to requests at this node, the newest last')
    .option('-f, --follow', 'go on with each request that ends')
    .option('-n, --lines <count>', 'how many (default: 20)', positiveInteger);
  requests.action(async () => {
    const {follow, lines: count} = requestsFlags.parse(requests.opts());
    const {showRequests} = await commands();
    await showRequests(await queryFor(requests), {follow, count}, systemClock);
  });

  const why = asking(program.command('why'))
    .description('tell why a request ran where it ran')
    .argument('<request>', 'its id, or the beginning of it; answers carry it in x-hearsay-request');
  why.action(async (id: string) => (await commands()).showWhy(id, await queryFor(why)));

  const replay = asking(program.command('replay'))
    .description('make the decisions of a request again, from the facts of then')
    .argument('<request>');
  replay.action(async (id: string) => (await commands()).replayRequest(id, await queryFor(replay)));

  const route = asking(program.command('route'))
    .description('tell where a request would go, without running it')
    .argument('<model>')
    .option('--prompt-bytes <count>', 'how large its prompt would be')
    .option('--policy <policy>', 'auto, prefer=NODE[,NODE…] or pin=NODE[,NODE…]')
    .option('--needs <list>', 'what it needs: chat, tools, vision, …');
  route.action(async (model: string) => {
    const {promptBytes, policy, needs} = routeFlags.parse(route.opts());
    const {showRoute} = await commands();
    await showRoute(model, {promptBytes, policy, needs}, await queryFor(route));
  });
}
