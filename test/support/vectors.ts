import { readFileSync } from "node:fs";
import type { Pod } from "../../src/api/pod.ts";
import type { PodStatus } from "../../src/api/status.ts";

const directory = new URL("../fixtures/vectors/", import.meta.url);

/** A text file recorded from the Go kubelet. */
export function vectorText(name: string): string {
  return readFileSync(new URL(name, directory), "utf8");
}

/** A recorded JSON file. The caller knows its shape. */
export function vectorJson<T>(name: string): T {
  return JSON.parse(vectorText(name)) as T;
}

/** The Go kubelet's static pods, defaulted, with their status. */
export function recordedPods(): (Pod & { readonly status: PodStatus })[] {
  return vectorJson<{ items: (Pod & { status: PodStatus })[] }>("pods.json").items;
}

/** The recorded pod of that UID. */
export function recordedPod(uid: string): Pod & { readonly status: PodStatus } {
  const pod = recordedPods().find((candidate) => candidate.metadata.uid === uid);
  if (pod === undefined) throw new Error(`no recorded pod has the UID ${uid}`);
  return pod;
}

/** The node that the vectors were recorded on. */
export const recordedNode = {
  memoryCapacityBytes: 25_276_514_304n,
  hugePageSizes: [2n ** 21n, 2n ** 30n],
} as const;
