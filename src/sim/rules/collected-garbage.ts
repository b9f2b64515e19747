import type { EntryName } from "../../journal/vocabulary.ts";
import type { SimEntry } from "../life/node.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/** Removals that nothing but the node's collection performs. */
const nodesOwn: ReadonlySet<EntryName> = new Set<EntryName>(["RemovePodLogs", "RemoveLogLink"]);
const parts: ReadonlySet<EntryName> = new Set<EntryName>(["RemoveContainer", "RemovePodSandbox"]);
/** The cause of a pod's own worker, which knows its pod. */
const ofWorker = "older dead instances of a container are removed";

/** The node's collection removes nothing before all pods are known: neither dead containers nor what is left of others. */
export const collectedGarbage: RuleMaker = ({ node }, broken): Rule => ({
  entry: (entry) => {
    if (entry.kind !== "action" || !isOfNode(entry)) return;
    // If calls hang, an earlier observation of the runtime may still be in use.
    if (node.mayCollect || !node.callsAreTimely) return;
    broken("nothing is collected before all pods are known", `${entry.what}: ${entry.message}`);
  },
});

function isOfNode({ what, cause }: SimEntry): boolean {
  if (nodesOwn.has(what)) return true;
  if (what === "RemoveCgroup") return cause?.message === "neither a source nor the runtime has the pod";
  return parts.has(what) && cause?.code === "ContainerGC" && cause.message !== ofWorker;
}
