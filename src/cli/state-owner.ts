import type { Files } from "../ports/files.ts";
import type { RuntimeLayout } from "../private-runtime/layout.ts";

/** Which podwright keeps its state in a directory: the engine of `podwright run`, or `podwright kubelet`. */
export type StateOwner = "run" | "kubelet";

/**
 * The owner of a state directory, by what it left there: both keep a journal, only an engine has manifests of its own or
 * a log that a command opened. A directory that cannot be read, or is not there, counts as an engine's.
 */
export async function stateOwner(files: Pick<Files, "stat">, layout: RuntimeLayout): Promise<StateOwner> {
  const exists = async (path: string): Promise<boolean> => (await files.stat(path)) !== undefined;
  try {
    if (!(await exists(layout.journal))) return "run";
    const ofEngines = [layout.manifests, layout.containerd.config, `${layout.stateDirectory}/engine.log`];
    for (const path of ofEngines) if (await exists(path)) return "run";
    return "kubelet";
  } catch {
    return "run";
  }
}
