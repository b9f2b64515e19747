import { hasUidForm, isNamedAfterUid, type PodUid, podUid } from "../../base/ids.ts";
import type { Files } from "../../ports/files.ts";
import type { NodeContext } from "../node-context.ts";
import { keptSpec, keptUid } from "./kept-spec.ts";

/**
 * Whether an entry of `pods` belongs to a pod that kubelets make, or that podwright has started, by its stored spec. A
 * copy of a pod's directory has that of its original. Removal needs this proof: what is no copy need not be a pod's.
 */
export async function namesPod(
  files: Pick<Files, "read">,
  node: Pick<NodeContext, "rootDirectory">,
  name: string,
): Promise<boolean> {
  return hasUidForm(name) || (await keptSpec(files, node, podUid(name))) !== undefined;
}

/**
 * Whether an entry of `pods` is a copy of a pod's directory, by the spec that is stored there, or else by its name: a
 * recorded pod is none, however its manifest names it.
 */
export async function isCopyOfPod(
  files: Pick<Files, "read">,
  node: Pick<NodeContext, "rootDirectory">,
  name: string,
): Promise<boolean> {
  const kept = await keptUid(files, node, podUid(name));
  return kept === undefined ? isNamedAfterUid(name) : kept !== name;
}

/** In the order in which they are read: UIDs in the usual form first, and each before the copies named after it. Pure. */
export function inUidOrder(names: readonly string[]): PodUid[] {
  const sorted = names.toSorted();
  const [usual, others] = [sorted.filter(hasUidForm), sorted.filter((name) => !hasUidForm(name))];
  return [...usual, ...others].map((name) => podUid(name));
}
