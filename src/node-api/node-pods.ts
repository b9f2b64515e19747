import { allContainers } from "../api/all-containers.ts";
import type { Pod } from "../api/pod.ts";
import type { PodStatus as ApiPodStatus } from "../api/status.ts";
import { type PodUid, podUid } from "../base/ids.ts";
import type { PodStatus } from "../runtime/status/pod-status.ts";
import { ApiError } from "./api-error.ts";

/** A pod as the kubelet's API needs it. */
export interface NodePod {
  readonly pod: Pod;
  /** Undefined before the first observation of the pod. */
  readonly status: ApiPodStatus | undefined;
  /** The runtime's state of the pod. */
  readonly observed: PodStatus;
  /** No container of it runs or will run again. */
  readonly ended: boolean;
}

/** A pod, and optionally one of its containers, as a path names them. */
export interface PodTarget {
  readonly namespace: string;
  readonly name: string;
  /** Undefined: any pod of the name. */
  readonly uid: PodUid | undefined;
  readonly container: string;
}

/**
 * `/<verb>/<namespace>/<pod>/<container>`, with a UID before the container in the older form.
 * @param rest the segments after the verb, decoded
 * @throws ApiError 404 for another number of segments
 */
export function containerTarget(rest: readonly string[]): PodTarget {
  const [namespace = "", name = "", third = "", fourth] = rest;
  if (rest.length === 3) return { namespace, name, uid: undefined, container: third };
  if (rest.length === 4 && fourth !== undefined) return { namespace, name, uid: podUid(third), container: fourth };
  throw new ApiError(404, "404 page not found\n");
}

/** `/<verb>/<namespace>/<pod>/<container>` alone. @throws ApiError 404 for another number of segments */
export function logTarget(rest: readonly string[]): PodTarget {
  if (rest.length === 3) return containerTarget(rest);
  throw new ApiError(404, "404 page not found\n");
}

/** `/portForward/<namespace>/<pod>[/<uid>]`. @throws ApiError 404 for another number of segments */
export function podTarget(rest: readonly string[]): PodTarget {
  const [namespace = "", name = "", uid] = rest;
  if (rest.length === 2) return { namespace, name, uid: undefined, container: "" };
  if (rest.length === 3 && uid !== undefined) return { namespace, name, uid: podUid(uid), container: "" };
  throw new ApiError(404, "404 page not found\n");
}

/** The target's pod; during a replacement, the new one. @throws ApiError 404 */
export function findPod(pods: readonly NodePod[], target: PodTarget): NodePod {
  const pod = podOf(pods, target);
  if (pod === undefined) throw new ApiError(404, `pod ${JSON.stringify(target.name)} does not exist\n`);
  return pod;
}

/** Likewise; undefined: there is none. */
export function podOf(pods: readonly NodePod[], { namespace, name, uid }: PodTarget): NodePod | undefined {
  const found = pods.filter(({ pod: { metadata } }) => {
    return metadata.namespace === namespace && metadata.name === name && (uid === undefined || metadata.uid === uid);
  });
  return found.find(({ ended }) => !ended) ?? found[0];
}

/** True for a container in the pod's spec: nothing else of the disk or the runtime may be accessed. */
export function hasContainer({ spec }: Pod, name: string): boolean {
  return allContainers(spec).some((container) => container.name === name);
}
