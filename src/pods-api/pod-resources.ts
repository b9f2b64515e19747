import { lastingContainers } from "../api/all-containers.ts";
import type { ServiceImpl } from "@connectrpc/connect";
import type { Pod } from "../api/pod.ts";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  ContainerResourcesSchema,
  PodResourcesLister,
  PodResourcesSchema,
} from "../ports/gen/podresources/v1/api_pb.js";
import type { PodResourcesLister as PodResourcesListerAlpha } from "../ports/gen/podresources/v1alpha1/api_pb.js";
import { RpcError } from "../ports/rpc.ts";

/** Observes calls. @param version of the API */
export interface PodResourcesObserver {
  called(version: "v1" | "v1alpha1", method: "list" | "get" | "get_allocatable"): void;
  failed(version: "v1" | "v1alpha1", method: "list" | "get" | "get_allocatable"): void;
}

/** A pod, and whether it has ended: nothing of it runs or will ever run again. */
export interface ListedPod {
  readonly pod: Pod;
  readonly ended: boolean;
}

/**
 * The pod resources API (`pod-resources/kubelet.sock`). No container has exclusive processors, memory or devices here:
 * that requires managers that podwright does not have, like upstream's with the policy `None`.
 * @param listsEnded whether `List` includes ended pods (gate KubeletPodResourcesListUseActivePods off)
 */
export function podResources(
  pods: () => readonly ListedPod[],
  listsEnded: boolean,
  observer: PodResourcesObserver,
): ServiceImpl<typeof PodResourcesLister> {
  return {
    list: () => {
      observer.called("v1", "list");
      const listed = pods().filter(({ ended }) => listsEnded || !ended);
      return { podResources: listed.map(({ pod }) => resourcesOf(pod)) };
    },
    getAllocatableResources: () => {
      observer.called("v1", "get_allocatable");
      return { devices: [], cpuIds: [], memory: [] };
    },
    get: ({ podName, podNamespace }) => {
      observer.called("v1", "get");
      const found = pods().find(({ pod: { metadata }, ended }) => {
        return !ended && metadata.name === podName && metadata.namespace === podNamespace;
      });
      if (found !== undefined) return { podResources: resourcesOf(found.pod) };
      observer.failed("v1", "get");
      // Upstream's answer has no code of its own either.
      throw new RpcError("Unknown", `pod ${podName} in namespace ${podNamespace} not found`);
    },
  };
}

/** Its first form, which knows devices only and no sidecars, and lists pods that have ended too. */
export function podResourcesAlpha(
  pods: () => readonly ListedPod[],
  observer: PodResourcesObserver,
): ServiceImpl<typeof PodResourcesListerAlpha> {
  return {
    list: () => {
      observer.called("v1alpha1", "list");
      const listed = pods().map(({ pod: { metadata, spec } }) => ({
        name: metadata.name,
        namespace: metadata.namespace,
        containers: spec.containers.map(({ name }) => ({ name, devices: [] })),
      }));
      return { podResources: listed };
    },
  };
}

/** Sidecars first, then the regular containers; other init containers and ephemeral ones are not among them. */
function resourcesOf({ metadata, spec }: Pod): MessageInitShape<typeof PodResourcesSchema> {
  const containers: MessageInitShape<typeof ContainerResourcesSchema>[] = lastingContainers(spec).map(({ name }) => ({
    name,
    devices: [],
    cpuIds: [],
    memory: [],
    dynamicResources: [],
  }));
  return { name: metadata.name, namespace: metadata.namespace, containers };
}
