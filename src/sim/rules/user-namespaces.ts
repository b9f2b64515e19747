import { type IDMapping, NamespaceMode, type NamespaceOption } from "../../ports/gen/runtime/v1/api_pb.js";
import { type IdRange, overlaps } from "../../runtime/config/id-ranges.ts";
import { mayRun, nameOf, type SimContainer, type SimSandbox } from "../world-model.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/** Pods with user namespaces have unique ID ranges of the node, shared by their containers and mounts. */
export const userNamespaces: RuleMaker = ({ world, pods }, broken): Rule => {
  const wantsOwn = (uid: string): boolean => pods.get(uid)?.spec.hostUsers === false;

  function sandboxStarted(sandbox: SimSandbox, uid: string): void {
    const range = rangeOf(sandbox.config.linux?.securityContext?.namespaceOptions);
    if ((range !== undefined) !== wantsOwn(uid)) broken("users as specified", `${uid} has ${show(range)}`);
    if (range === undefined) return;
    for (const other of world.sandboxes.values()) {
      const otherUid = other.config.metadata?.uid ?? "";
      if (otherUid === uid || !isUsed(other)) continue;
      const taken = rangeOf(other.config.linux?.securityContext?.namespaceOptions);
      if (taken !== undefined && overlaps(taken, range)) {
        broken("user IDs belong to one pod", `${uid} has ${show(range)}, ${otherUid} ${show(taken)}`);
      }
    }
  }

  function isUsed({ id, ready }: SimSandbox): boolean {
    return ready || [...world.containers.values()].some((container) => container.sandboxId === id && mayRun(container));
  }

  function created({ config, sandboxId }: SimContainer, name: string): void {
    const pod = world.sandboxes.get(sandboxId)?.config.linux?.securityContext?.namespaceOptions;
    const [ofPod, own] = [rangeOf(pod), rangeOf(config.linux?.securityContext?.namespaceOptions)];
    if (show(ofPod) !== show(own)) {
      broken("a pod's containers share its users", `${name}: ${show(own)}, its pod: ${show(ofPod)}`);
    }
    for (const { containerPath, uidMappings, gidMappings } of config.mounts) {
      const mapped = [uidMappings, gidMappings].map((mappings) => show(mappedTo(mappings)));
      if (mapped.some((range) => range !== show(own))) {
        broken("mounts have the pod's ids", `${name}: ${containerPath} has ${mapped.join(" and ")}`);
      }
    }
  }

  return {
    change: ({ type, podUid: uid, sandbox, container }) => {
      if (type === "sandboxStarted" && sandbox !== undefined && pods.has(uid)) sandboxStarted(sandbox, uid);
      if (type === "created" && container !== undefined) created(container, `${uid}/${nameOf(container)}`);
    },
  };
};

function rangeOf(options: NamespaceOption | undefined): IdRange | undefined {
  const own = options?.usernsOptions;
  return own?.mode === NamespaceMode.POD ? mappedTo(own.uids) : undefined;
}

function mappedTo([only]: readonly IDMapping[]): IdRange | undefined {
  return only && { first: only.hostId, length: only.length };
}

function show(range: IdRange | undefined): string {
  return range === undefined ? "the node's ids" : `ids from ${range.first}, ${range.length} of them`;
}
