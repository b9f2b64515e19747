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

/** Some pods mount images, of which a few are large and a few do not exist. */
export function withImageVolumes(pod: Pod, random: SimRandom): Pod {
  if (!random.chance(0.5)) return pod;
  const reference = random.pick(["data:1", "data:1", "data:1", "data", "large-data:1", "missing-data:1"]);
  const pullPolicy = random.pick([
    "IfNotPresent",
    "IfNotPresent",
    "Always",
    reference === "data:1" ? "Never" : "Always",
  ]);
  const volumes: Volume[] = [{ name: "image", image: { reference, pullPolicy } }];
  // The same image as a container's, and one that nothing mounts.
  if (random.chance(0.3)) volumes.push({ name: "own", image: { reference: "busybox", pullPolicy: "IfNotPresent" } });
  const mounts = volumes.map(({ name }) => ({ name, mountPath: `/${name}` }));
  if (random.chance(0.2)) volumes.push({ name: "unused", image: { reference: "missing-unused:1" } });
  const isFirst = random.chance(0.3);
  const mounting = (container: Container, index: number): Container => {
    if (isFirst && index > 0) return container;
    return { ...container, volumeMounts: [...(container.volumeMounts ?? []), ...mounts] };
  };
  const { spec } = pod;
  const containers = spec.containers.map(mounting);
  return { ...pod, spec: { ...spec, volumes: [...(spec.volumes ?? []), ...volumes], containers } };
}
