import type {StoredModel} from '@hearsay/core';
import {stepTokensOf} from './own-arguments.ts';

/** What one engine is started with, besides its model. */
export interface EngineSettings {
  readonly slots: number;
  /** Most context of one slot, in tokens; a model that was trained for less gets less. */
  readonly contextMax: number;
  /** `-t`; undefined: llama-server's own choice. */
  readonly threads: number | undefined;
  readonly cacheRamMiB: number;
  readonly extraArguments: readonly string[];
}

/**
 * Everything that costs memory or opens a door is said explicitly: without `-c` and `-np` llama-server takes four
 * times the trained context, without `--cache-ram` another 8 GiB. The owner's own arguments come last, so that they
 * win.
 */
export function engineArguments(model: StoredModel, settings: EngineSettings, port: number): readonly string[] {
  const {slots, threads, cacheRamMiB, extraArguments} = settings;
  return [
    // A comma would make several aliases of one.
    ['-m', model.files[0], '--alias', model.names[0].replaceAll(',', '_')],
    projectorArguments(model, extraArguments),
    ['--host', '127.0.0.1', '--port', String(port)],
    ['-c', String(slots * slotContext(model, settings)), '-np', String(slots), '--cache-ram', String(cacheRamMiB)],
    ['--no-ui', '--offline'],
    threads === undefined ? [] : ['-t', String(threads)],
    purposeArguments(model, slotContext(model, settings)),
    extraArguments,
  ].flat();
}

function projectorArguments({projector, shape}: StoredModel, own: readonly string[]): readonly string[] {
  if (projector === undefined) return [];
  return ['--mmproj', projector, ...(shape?.wholeImages === true ? imageLimits(stepTokensOf(own)) : [])];
}

/** What the models that read an image in one step, Gemma 4, make of one by themselves, in tokens. */
const imageTokensMin = 70;
const imageTokensMax = 1120;

/** An image that does not fit into one step is made smaller rather than that it ends the engine. */
function imageLimits(stepTokens: number): readonly string[] {
  const least = stepTokens < imageTokensMin ? ['--image-min-tokens', String(stepTokens)] : [];
  return ['--image-max-tokens', String(Math.min(stepTokens, imageTokensMax)), ...least];
}

/** Context of one slot, in tokens. */
export function slotContext({contextMax}: StoredModel, settings: EngineSettings): number {
  return contextMax > 0 ? Math.min(contextMax, settings.contextMax) : settings.contextMax;
}

/** Models that only read take a text in one batch: one that is longer than the batch would be an error (500). */
function purposeArguments({capabilities}: StoredModel, context: number): readonly string[] {
  if (capabilities.includes('chat') || capabilities.includes('completion')) return [];
  const batch = ['-b', String(context), '-ub', String(context)];
  if (capabilities.includes('rerank')) return ['--rerank', ...batch];
  return capabilities.includes('embeddings') ? ['--embeddings', ...batch] : [];
}

/** Where to find programs, libraries, devices and the user's folders: all that llama-server needs of this process. */
const passedOn: RegExp = new RegExp(
  `^(?:${[
    'PATH|HOME|USER|LANG|LC_.*|TZ|TMPDIR|TEMP|TMP|XDG_.*',
    'SYSTEMROOT|SYSTEMDRIVE|WINDIR|COMSPEC|PATHEXT|USERPROFILE|APPDATA|LOCALAPPDATA|PROGRAM.*',
    'LD_.*|DYLD_.*|NIX_.*|OMP_.*|KMP_.*|GGML_.*',
    'LLAMA_MEDIA_MARKER', // for who writes prompts with images by hand: else each server makes up its own
    'CUDA_.*|NVIDIA_.*|HIP_.*|ROCR_.*|ROCM_.*|HSA_.*|GPU_.*|VK_.*|MESA_.*|ONEAPI_.*|SYCL_.*|ZE_.*|ZES_.*|METAL_.*|MTL_.*',
  ].join('|')})$`,
  'iu',
);

/**
 * The child's environment. Names that are not listed stay here: they may be secrets, or `LLAMA_ARG_…`, which would
 * change the meaning of our arguments.
 */
export function engineEnvironment(
  inherited: Readonly<Record<string, string | undefined>>,
  apiKey: string,
): Record<string, string> {
  const passed = Object.entries(inherited).flatMap(([name, value]) =>
    value !== undefined && passedOn.test(name) ? [[name, value] as const] : [],
  );
  return {
    ...Object.fromEntries(passed),
    LLAMA_API_KEY: apiKey,
    // With gdb installed a crash would first run it for a backtrace.
    GGML_NO_BACKTRACE: '1',
    // Child mode: it exits when its stdin closes, so also when this process is killed, and says on stdout when it is
    // ready.
    LLAMA_SERVER_ROUTER_PORT: '0',
  };
}
