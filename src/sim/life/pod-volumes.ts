import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import type { Volume } from "../../api/volume.ts";
import type { SimRandom } from "../random.ts";

/** Adds volumes of some kinds to a pod, mounted in each of its containers, one by a subPath. */
export function withVolumes(pod: Pod, random: SimRandom, always: boolean): Pod {
  const kinds: Volume[] = [
    { name: "disk", emptyDir: {} },
    { name: "memory", emptyDir: { medium: "Memory" } },
    { name: "settings", configMap: { name: "settings" } },
    { name: "all", projected: { sources: [{ configMap: { name: "settings" } }] } },
    { name: "secret", secret: { secretName: "credentials" } },
    { name: "labels", downwardAPI: { items: [{ path: "labels", fieldRef: { fieldPath: "metadata.labels" } }] } },
  ];
  const volumes = kinds.filter(() => random.chance(always ? 0.5 : 0.25));
  if (random.chance(0.05)) volumes.push({ name: "late", configMap: { name: "late" } });
  if (volumes.length === 0) return pod;
  const volumeMounts = volumes.map(({ name }) => ({
    name,
    mountPath: `/${name}`,
    ...(name === "disk" && random.chance(0.5) && { subPath: "part" }),
  }));
  const mounting = (container: Container): Container => ({ ...container, volumeMounts });
  const { spec } = pod;
  return {
    ...pod,
    spec: {
      ...spec,
      volumes,
      containers: spec.containers.map(mounting),
      ...(spec.initContainers && { initContainers: spec.initContainers.map(mounting) }),
    },
  };
}
