import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import type { Volume } from "../../api/volume.ts";
import { SimRandom } from "../random.ts";

const template = { spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Mi" } } } };

/** In some lives pods use a shared claim, or an ephemeral one. */
export function withClaims(pod: Pod, random: SimRandom, seed: number, always: boolean): Pod {
  if (!always && !SimRandom.named(seed, "claims").chance(0.3)) return pod;
  const kinds: Volume[] = [
    { name: "kept", persistentVolumeClaim: { claimName: "data" } },
    { name: "scratch", ephemeral: { volumeClaimTemplate: template } },
  ];
  const claimed = kinds.filter(() => random.chance(always ? 0.8 : 0.4));
  if (claimed.length === 0) return pod;
  return withMounted(pod, claimed);
}

/** Some pods mount a server's export. */
export function withExport(pod: Pod, random: SimRandom): Pod {
  return random.chance(0.1) ? withMounted(pod, [{ name: "export", nfs: { server: "files", path: "/" } }]) : pod;
}

function withMounted(pod: Pod, volumes: readonly Volume[]): Pod {
  const volumeMounts = volumes.map(({ name }) => ({ name, mountPath: `/${name}` }));
  const mounting = (container: Container): Container => ({
    ...container,
    volumeMounts: [...(container.volumeMounts ?? []), ...volumeMounts],
  });
  const { spec } = pod;
  return {
    ...pod,
    spec: { ...spec, volumes: [...(spec.volumes ?? []), ...volumes], containers: spec.containers.map(mounting) },
  };
}
