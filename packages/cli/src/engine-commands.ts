import {engineVersion, findEngine, installedEngines} from '@hearsay/engine';
import type {Engine} from '@hearsay/engine';
import {installAny} from './provide-engine.ts';
import type {EngineOrigin} from './provide-engine.ts';
import {systemClock} from './system.ts';
import type {Variables} from './system.ts';
import {engineListTable} from './tables.ts';
import type {Terminal} from './terminal.ts';

interface EnginePlaces {
  readonly cacheFolder: string;
  readonly variables: Variables;
}

/** Prints the command of the engine that is now installed. */
export async function engineInstall(
  {cacheFolder, from}: EnginePlaces & {readonly from: EngineOrigin | undefined},
  terminal: Terminal,
): Promise<void> {
  const interrupted = new AbortController();
  process.once('SIGINT', () => interrupted.abort(new DOMException('interrupted', 'AbortError')));
  const engine = await installAny(cacheFolder, from, {clock: systemClock, terminal}, interrupted.signal);
  terminal.error(`installed llama-server ${engine.version ?? ''}\n`);
  terminal.out(`${engine.command}\n`);
}

/** Every engine that hearsay would find, the one it uses first. */
export async function engineList(
  {cacheFolder, variables, path, json}: EnginePlaces & {readonly path: string | undefined; readonly json: boolean},
  terminal: Terminal,
): Promise<void> {
  const used = await findEngine(
    {configuredCommand: path, searchPath: variables['PATH'] ?? '', cacheFolder},
    {clock: systemClock},
  );
  const others = (await installedEngines(cacheFolder)).filter(engine => engine.command !== used?.command);
  const engines = await Promise.all([...(used === undefined ? [] : [used]), ...others].map(withVersion));
  terminal.out(json ? `${JSON.stringify({engines}, undefined, 2)}\n` : engineListTable(engines));
}

async function withVersion(engine: Engine): Promise<Engine & {readonly version: string}> {
  return {...engine, version: engine.version ?? (await engineVersion(engine, {clock: systemClock}))};
}
