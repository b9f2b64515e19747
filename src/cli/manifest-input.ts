import type { ApplyRequest } from "../server/engine.ts";
import { decodeManifests } from "../sources/decode.ts";
import type { ManifestError } from "../sources/manifest-error.ts";
import { prepareManifests } from "../sources/prepare.ts";
import type { CommandContext } from "./context.ts";

export interface LoadedInput {
  readonly request: ApplyRequest;
  readonly errors: readonly ManifestError[];
}

export async function loadInput(
  context: CommandContext,
  inputs: readonly string[],
  _signal: AbortSignal,
): Promise<LoadedInput> {
  const all = [];
  const errors = [];
  for (const input of inputs) {
    const decoded = decodeManifests(await context.files.read(input, 1e6), input);
    all.push(...decoded.objects);
    errors.push(...decoded.errors);
  }
  const { pods, configMaps, secrets, errors: more } = prepareManifests(all);
  return {
    request: {
      pods: pods.map((x) => x.manifest),
      configMaps: configMaps.map((x) => x.manifest),
      secrets: secrets.map((x) => x.manifest),
    },
    errors: [...errors, ...more],
  };
}
