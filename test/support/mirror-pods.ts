import type { Pod } from "../../src/api/pod.ts";
import type { ApiPod } from "../../src/sources/api-pod.ts";
import { type MetadataParts, podWith } from "./pods.ts";

export function staticPod(name: string, hash: string): Pod {
  const annotations = { "kubernetes.io/config.hash": hash, "kubernetes.io/config.source": "file" };
  return podWith({ containers: [{ name: "c" }] }, { name, uid: hash, annotations });
}

export function mirrorPod(name: string, hash: string, more: MetadataParts = {}): ApiPod {
  const annotations = { "kubernetes.io/config.mirror": hash };
  const pod = podWith({ containers: [{ name: "c" }] }, { name, uid: `mirror-${name}`, annotations, ...more });
  return { ...pod, status: undefined, unsupported: "", isPartial: false, definition: "" };
}
