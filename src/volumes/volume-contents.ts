import type { Pod } from "../api/pod.ts";
import type { Volume } from "../api/volume.ts";
import { errorMessage } from "../base/errors.ts";
import type { Semaphore } from "../base/semaphore.ts";
import type { Cause } from "../journal/entry.ts";
import type { Logger } from "../ports/log.ts";
import { ContainerConfigError, NotKnownYetError } from "../runtime/config/container-config-error.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { VolumeError } from "../runtime/volume-error.ts";
import type { VolumePaths } from "./volume-paths.ts";
import { refreshVolume, type VolumeRefreshDependencies } from "./volume-refresh.ts";
import type { VolumeMemory, VolumeSetUp } from "./volume-set-up.ts";
import { inlineSpec } from "./volume-spec.ts";

/** A pod whose volumes get the present content of their objects. */
export interface RefreshedPod {
  readonly pod: Pod;
  readonly paths: VolumePaths;
  readonly memory: Pick<VolumeMemory, "contents"> & {
    /** The pod's volume lock. */
    readonly turn: Semaphore;
  };
}

/** Keeps the content of pods' volumes like their objects. */
export class VolumeContents {
  readonly #deps: VolumeRefreshDependencies & { readonly log: Logger };
  readonly #setUp: Pick<VolumeSetUp, "pluginOf" | "prepare" | "labelOf">;

  constructor(
    deps: VolumeRefreshDependencies & { readonly log: Logger },
    setUp: Pick<VolumeSetUp, "pluginOf" | "prepare" | "labelOf">,
  ) {
    this.#deps = deps;
    this.#setUp = setUp;
  }

  /** Whether its content follows objects that change. */
  follows(volume: Volume): boolean {
    return this.#setUp.pluginOf(inlineSpec(volume))?.followsObjects === true;
  }

  /**
   * Problems are logged; the pod keeps its existing content.
   * @returns false after a failure that may be temporary
   */
  async refresh(
    { pod, paths, memory }: RefreshedPod,
    volumes: readonly Volume[],
    cause: Cause,
    signal: AbortSignal,
  ): Promise<boolean> {
    using _turn = await memory.turn.acquire(signal);
    let isFresh = true;
    for (const volume of volumes) {
      try {
        const spec = inlineSpec(volume);
        const prepared = this.#setUp.prepare(pod, spec, paths);
        const plugin = this.#setUp.labelOf(spec)?.plugin ?? "";
        await refreshVolume(this.#deps, { pod, plugin, prepared }, memory.contents, cause);
      } catch (error) {
        isFresh &&= awaitsObjects(error);
        const fields = { ...podRef(pod), volume: volume.name, error: errorMessage(error) };
        this.#deps.log.warn("cannot refresh a volume", fields);
      }
    }
    return isFresh;
  }
}

/** The same objects would fail the same way; a change of one wakes the pod. */
function awaitsObjects(error: unknown): boolean {
  return [VolumeError, ContainerConfigError, NotKnownYetError].some((kind) => error instanceof kind);
}
