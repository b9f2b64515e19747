import type { Pod } from "../../api/pod.ts";
import type { Volume } from "../../api/volume.ts";
import { claimedVolumes, inlineDriver } from "../csi/claimed-volumes.ts";
import type { SimRandom } from "../random.ts";

/** Adds CSI volumes to a pod, inline and with claims that several pods share, mounted in each container. */
export function withDriverVolumes(pod: Pod, random: SimRandom): Pod {
  const kinds: Volume[] = [
    ...claimedVolumes.map(({ claim }) => ({ name: claim, persistentVolumeClaim: { claimName: claim } })),
    { name: "inline", csi: { driver: inlineDriver.name, volumeAttributes: { size: "1Gi" } } },
  ];
  const chosen = kinds.filter(() => random.chance(0.3));
  if (chosen.length === 0) return pod;
  const { spec } = pod;
  const own = chosen.map(({ name }) => ({
    name,
    mountPath: `/${name}`,
    ...(name !== "inline" && random.chance(0.2) && { subPath: "part" }),
  }));
  const mounting = <C extends Pod["spec"]["containers"][number]>(container: C): C => {
    return { ...container, volumeMounts: [...(container.volumeMounts ?? []), ...own] };
  };
  return {
    ...pod,
    spec: {
      ...spec,
      volumes: [...(spec.volumes ?? []), ...chosen],
      containers: spec.containers.map(mounting),
      ...(spec.initContainers && { initContainers: spec.initContainers.map(mounting) }),
    },
  };
}

/** Its volumes belong to a group. */
export function withGroup(pod: Pod): Pod {
  return { ...pod, spec: { ...pod.spec, securityContext: { ...pod.spec.securityContext, fsGroup: 2000 } } };
}
