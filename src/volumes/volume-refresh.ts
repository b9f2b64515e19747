import type { Pod } from "../api/pod.ts";
import type { Cause, Recorder } from "../journal/entry.ts";
import { type ActionInput, perform } from "../journal/perform.ts";
import type { Clock } from "../ports/clock.ts";
import { ContainerConfigError } from "../runtime/config/container-config-error.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { VolumeError } from "../runtime/volume-error.ts";
import { setUpProblem, VolumeOperationError } from "./volume-operation-error.ts";
import { measuredMount, type OperationObserver } from "./volume-operations.ts";
import { knownInputs, type PreparedVolume } from "./volume-plugin.ts";

export interface VolumeRefreshDependencies {
  readonly clock: Clock;
  readonly journal: Recorder;
  readonly observer?: OperationObserver;
}

/** A volume of a running pod, with content from objects. */
export interface RefreshedVolume {
  readonly pod: Pod;
  readonly prepared: PreparedVolume;
  /** For metrics. */
  readonly plugin: string;
}

/**
 * Updates the content of a volume after a change of its objects.
 * @param contents the inputs of the pod's volumes at their last update, by name
 * @throws the problem of the update
 */
export async function refreshVolume(
  deps: VolumeRefreshDependencies,
  { pod, prepared, plugin }: RefreshedVolume,
  contents: Map<string, readonly unknown[]>,
  cause: Cause,
): Promise<void> {
  const { content, name, type } = prepared;
  const inputs = knownInputs(prepared);
  // Unknown objects wake the pod once they are known.
  if (content === undefined || inputs === undefined || isSame(inputs, contents.get(name))) return;
  if (await content.isOutdated()) {
    const action: ActionInput = {
      what: "UpdateVolume",
      message: `update ${type} volume ${name}`,
      pod: podRef(pod),
      cause,
      data: { volume: name, type },
    };
    const update = async (): Promise<void> => {
      await content.update().catch((error: unknown) => {
        throw setUpProblem({ name, mode: "Filesystem" }, error);
      });
    };
    try {
      const performed = (): Promise<void> => perform(deps.journal, deps.clock, action, update);
      await measuredMount(deps, { plugin, mode: "Filesystem" }, performed);
    } catch (error) {
      const reason = error instanceof VolumeOperationError ? error.cause : error;
      // The same objects would fail the same way: reported once, and retried when one changes.
      if (reason instanceof VolumeError || reason instanceof ContainerConfigError) contents.set(name, inputs);
      throw reason;
    }
  }
  contents.set(name, inputs);
}

function isSame(a: readonly unknown[], b: readonly unknown[] | undefined): boolean {
  return b !== undefined && a.length === b.length && a.every((value, index) => value === b[index]);
}
