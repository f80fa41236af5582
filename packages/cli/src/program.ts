import {homedir} from 'node:os';
import {Command, Option} from 'commander';
import {Fault} from '@hearsay/core';
import {z} from 'zod';
import {parseListen} from './addresses.ts';
import {addControl} from './control-program.ts';
import {addJournalCommands} from './journal-program.ts';
import {addKeyCommands} from './key-program.ts';
import {addOperatorCommands} from './operator-program.ts';
import {standardFolders} from './folders.ts';
import type {Config} from './config.ts';
import {addMesh} from './mesh-commands.ts';
import type {Query} from './query-commands.ts';
import type {RawSettings} from './settings.ts';
import type {Variables} from './system.ts';
import type {Terminal} from './terminal.ts';

export interface ProgramDeps {
  readonly version: string;
  readonly variables: Variables;
  readonly terminal: Terminal;
  /** Called with the exit code of a command that gives one. */
  readonly exitWith: (code: number) => void;
}

const serveFlags = z.object({
  name: z.string().optional(),
  dataDir: z.string().optional(),
  models: z.array(z.string()).optional(),
  gateway: z.string().optional(),
  mesh: z.string().optional(),
  meshPort: z.string().optional(),
  peer: z.array(z.string()).optional(),
  relay: z.boolean().optional(),
  announce: z.array(z.string()).optional(),
  role: z.string().optional(),
  engine: z.string().optional(),
  logLevel: z.string().optional(),
  config: z.string().optional(),
  install: z.boolean(),
});

const queryFlags = z.object({host: z.string().optional(), json: z.boolean().optional()});
const installFlags = z.object({from: z.enum(['registry', 'release']).optional()});
const listFlags = z.object({json: z.boolean().optional()});

/** All commands with their flags. What a command needs is loaded when it runs, so that each answers at once. */
export function makeProgram(deps: ProgramDeps): Command {
  const {terminal, version} = deps;
  const program = new Command('hearsay')
    .description('Every machine you own becomes one LLM endpoint.')
    .version(`hearsay ${version}`, '-v, --version')
    .exitOverride()
    .configureOutput({writeOut: terminal.out, writeErr: terminal.error})
    .showHelpAfterError('see: hearsay --help');
  addServe(program, deps);
  addQueries(program, deps);
  addEngine(program, deps);
  addMesh(program, async command => queryFor(command, deps));
  addDoctor(program, deps);
  program
    .command('version')
    .description('print the version of this command')
    .action(() => terminal.out(`hearsay ${version}\n`));
  return program;
}

function addServe(program: Command, deps: ProgramDeps): void {
  program
    .command('serve')
    .alias('start')
    .description('run a node on this machine')
    .option('--name <name>', 'what people call this node (default: the host name)')
    .option('--data-dir <dir>', 'where its key and its other files are')
    .option('--models <dir...>', 'folders with .gguf files')
    .option('--gateway <host:port>', 'where to serve HTTP clients (default: 127.0.0.1:4327)')
    .option('--mesh <name>', 'only nodes of one mesh name meet (default: home)')
    .option('--mesh-port <port>', 'TCP port for the other nodes (default: 4328)')
    .option('--peer <addr...>', 'a node to call where multicast does not reach')
    .option('--relay', 'pass connections on between members that cannot reach each other')
    .option('--announce <addr...>', 'where others reach this node from outside')
    .option('--role <role>', 'both, use or serve (default: both)')
    .option('--engine <path>', 'the llama-server to run')
    .option('--no-install', 'do not install an engine when none is found')
    .option('--log-level <level>', 'debug, info, warn or error (default: info)')
    .option('--config <file>', 'the config file')
    .action(async (_: unknown, command: Command) => {
      const flags = serveFlags.parse(command.opts());
      const config = await load(deps, settingsOfFlags(flags), flags.config);
      const {startServing} = await import('./start-serving.ts');
      deps.exitWith(await startServing({...common(deps), config, mayInstall: flags.install}, deps));
    });
}

function addQueries(program: Command, deps: ProgramDeps): void {
  const host = new Option('--host <url>', 'the daemon to ask: host, :port, host:port or a URL (default: HEARSAY_HOST)');
  const listings = [
    ['status', 'show the node that runs here', 'showStatus'],
    ['nodes', 'list the nodes of the mesh', 'showNodes'],
    ['ps', 'list the models that are loaded, on every node', 'showEngines'],
    ['models', 'list the models of every node', 'showModels'],
  ] as const;
  for (const [name, about, show] of listings) {
    const command = program
      .command(name)
      .description(about)
      .addOption(host)
      .option('--json', "the daemon's answer as JSON");
    if (name === 'models') command.alias('ls');
    command.action(async () => (await import('./query-commands.ts'))[show](await queryFor(command, deps)));
  }
  addJournalCommands(program, host, command => queryFor(command, deps));
  addOperatorCommands(program, host, command => queryFor(command, deps));
  addKeyCommands(program, host, command => queryFor(command, deps));
  addControl(
    program,
    () => host,
    command => queryFor(command, deps),
  );
}

function addEngine(program: Command, deps: ProgramDeps): void {
  const engine = program.command('engine').description('manage the llama-servers of this machine');
  engine
    .command('install')
    .description('install a llama-server, built from the npm registry or as an official release')
    .addOption(
      new Option('--from <origin>', 'where from (default: registry, else release)').choices(['registry', 'release']),
    )
    .action(async (_: unknown, command: Command) => {
      const {from} = installFlags.parse(command.opts());
      const {engineInstall} = await import('./engine-commands.ts');
      await engineInstall({...common(deps), from}, deps.terminal);
    });
  engine
    .command('ls')
    .description('list the llama-servers that hearsay can use, the one it uses first')
    .option('--json', 'as JSON')
    .action(async (_: unknown, command: Command) => {
      const {json = false} = listFlags.parse(command.opts());
      const {path} = (await load(deps, {}, undefined)).engine;
      const {engineList} = await import('./engine-commands.ts');
      await engineList({...common(deps), path, json}, deps.terminal);
    });
}

function addDoctor(program: Command, deps: ProgramDeps): void {
  const command = program
    .command('doctor')
    .description('check this machine and its node, and say what to do; ends with 0, 6 (warnings) or 1 (problems)')
    .option('--host <url>', 'the daemon to ask: host, :port, host:port or a URL (default: HEARSAY_HOST)')
    .option('--json', 'as JSON');
  command.action(async () => {
    const config = await load(deps, {}, undefined);
    const {client, json} = await queryFor(command, deps);
    const {doctor} = await import('./doctor.ts');
    deps.exitWith(await doctor({...common(deps), config, client, json}, deps.terminal));
  });
}

async function queryFor(command: Command, deps: ProgramDeps): Promise<Query> {
  const {host, json = false} = queryFlags.parse(command.opts());
  const {daemonUrl} = await import('./query-commands.ts');
  const {DaemonClient} = await import('./daemon-client.ts');
  let keys: readonly string[] = [];
  const url = await daemonUrl(host, deps.variables, async () => {
    const {dataFolder, gateway} = await load(deps, {}, undefined);
    ({keys} = gateway); // only for the daemon of this very config: no other is told them
    return dataFolder;
  });
  const client = new DaemonClient(url, deps.variables['HEARSAY_KEY'] || keys[0]);
  return {client, terminal: deps.terminal, json};
}

async function load({variables}: ProgramDeps, flags: RawSettings, file: string | undefined): Promise<Config> {
  const {loadConfig} = await import('./load-config.ts');
  return loadConfig({flags, file, variables, home: homedir(), workingFolder: process.cwd()});
}

interface Common {
  readonly version: string;
  readonly variables: Variables;
  readonly cacheFolder: string;
}

function common({version, variables}: ProgramDeps): Common {
  return {version, variables, cacheFolder: standardFolders(variables, homedir()).cache};
}

function settingsOfFlags(flags: z.infer<typeof serveFlags>): RawSettings {
  return withoutAbsent({
    name: flags.name,
    data_dir: flags.dataDir,
    log_level: flags.logLevel,
    ...listenSettings(flags.gateway),
    'mesh.name': flags.mesh,
    'mesh.port': flags.meshPort,
    'mesh.peers': flags.peer,
    'mesh.relay': flags.relay,
    'mesh.announce': flags.announce,
    'mesh.role': flags.role,
    'models.folders': flags.models,
    'engine.path': flags.engine,
  });
}

function listenSettings(gateway: string | undefined): RawSettings {
  if (gateway === undefined) return {};
  const listen = parseListen(gateway);
  if (listen === undefined) {
    throw new Fault('BAD_CONFIG', `--gateway must be HOST:PORT, :PORT or HOST, not ${JSON.stringify(gateway)}`);
  }
  return {'gateway.host': listen.host, 'gateway.port': listen.port};
}

/** A flag that was not given must not hide a weaker source. */
function withoutAbsent(settings: RawSettings): RawSettings {
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined));
}
