import { eitherSignal, orAborted } from "../base/abort.ts";
import type { PluginRegistry } from "../plugins/plugin-registry.ts";
import type { KubeletPlace } from "./kubelet-place.ts";
import type { KubeletPlaceGuard } from "./kubelet-place-guard.ts";

const why = "a kubelet has started at the place, and it may be a plugin of that one";

/**
 * Has plugins register while the engine has the place, until the signal aborts. In a kubelet's place the drivers of that
 * kubelet register: one of the same name would replace the engine's, and not see its volumes. Those that registered before
 * the kubelet was noticed are dropped.
 */
export async function runWhileTaken(
  registry: Pick<PluginRegistry, "run" | "drop">,
  place: Pick<KubeletPlace, "taken" | "left">,
  guard: Pick<KubeletPlaceGuard, "freeAtMs">,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await orAborted(place.taken, signal);
    if (signal.aborted) return;
    using taken = eitherSignal(signal, place.left);
    await registry.run(taken.signal);
    if (!signal.aborted) registry.drop(guard.freeAtMs, why);
  }
}
