import type { Pod } from "../api/pod.ts";
import type { ApiResponse } from "../ports/api-server.ts";
import { json } from "./answers.ts";
import type { NodePod } from "./node-pods.ts";

function podList(items: readonly unknown[]): ApiResponse {
  return json({ kind: "PodList", apiVersion: "v1", metadata: {}, items });
}

/** `/pods`: the desired pods with their status. */
export function desiredPods(pods: readonly NodePod[]): ApiResponse {
  return podList(pods.map(({ pod, status }) => ({ metadata: pod.metadata, spec: pod.spec, status: status ?? {} })));
}

/** `/runningpods/`: the runtime's pods, with the part of their spec that the runtime has. */
export function runningPods(pods: readonly NodePod[]): ApiResponse {
  const running = pods.map(({ pod, observed }) => ({
    pod,
    containers: observed.containers.filter(({ state }) => state === "running"),
  }));
  return podList(
    running
      .filter(({ containers }) => containers.length > 0)
      .map(({ pod, containers }) => ({
        metadata: reference(pod),
        spec: { containers: containers.map(({ name, image }) => ({ name, image, resources: {} })) },
        status: {},
      })),
  );
}

function reference({ metadata: { name, namespace, uid } }: Pod): object {
  return { name, namespace, uid, creationTimestamp: null };
}
