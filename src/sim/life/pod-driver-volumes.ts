import type { Pod } from "../../api/pod.ts";
import type { Volume } from "../../api/volume.ts";
import { type ClaimedVolume, claimedVolumes, deviceVolumes, inlineDriver } from "../csi/claimed-volumes.ts";
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

/** Adds devices, as such or with file systems, and a volume that one pod at a time may use. */
export function withDeviceVolumes(pod: Pod, random: SimRandom): Pod {
  // A pod with its own users may have no block volumes.
  const possible = deviceVolumes.filter(({ isBlock }) => !isBlock || pod.spec.hostUsers !== false);
  return withClaimed(
    pod,
    possible.filter(() => random.chance(0.3)),
  );
}

/** Its containers have the volumes of the claims. */
export function withClaimed(pod: Pod, volumes: readonly ClaimedVolume[]): Pod {
  if (volumes.length === 0) return pod;
  const { spec } = pod;
  const mounts = volumes
    .filter(({ isBlock }) => !isBlock)
    .map(({ claim }) => ({ name: claim, mountPath: `/${claim}` }));
  const devices = volumes
    .filter(({ isBlock }) => isBlock)
    .map(({ claim }) => ({ name: claim, devicePath: `/dev/${claim}` }));
  const using = <C extends Pod["spec"]["containers"][number]>(container: C): C => ({
    ...container,
    ...(mounts.length > 0 && { volumeMounts: [...(container.volumeMounts ?? []), ...mounts] }),
    ...(devices.length > 0 && { volumeDevices: devices }),
  });
  return {
    ...pod,
    spec: {
      ...spec,
      volumes: [
        ...(spec.volumes ?? []),
        ...volumes.map(({ claim: claimName }) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
      ],
      containers: spec.containers.map(using),
      ...(spec.initContainers && { initContainers: spec.initContainers.map(using) }),
    },
  };
}

/** Its volumes belong to a group. */
export function withGroup(pod: Pod): Pod {
  return { ...pod, spec: { ...pod.spec, securityContext: { ...pod.spec.securityContext, fsGroup: 2000 } } };
}

/** Most pods have one of a few levels, and some have each file labelled instead. */
export function withSELinux(pod: Pod, random: SimRandom): Pod {
  const level = random.pick([undefined, "s0:c1,c2", "s0:c3,c4"]);
  if (level === undefined) return pod;
  const isRecursive = random.chance(0.2);
  const securityContext = {
    ...pod.spec.securityContext,
    seLinuxOptions: { level },
    ...(isRecursive && { seLinuxChangePolicy: "Recursive" }),
  };
  return { ...pod, spec: { ...pod.spec, securityContext } };
}
