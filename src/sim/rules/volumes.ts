import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import type { Volume } from "../api/volume.ts";
import type { ConfigMapContent, ObjectLookup } from "../runtime/environment.ts";
import type { MemoryFiles } from "./files.ts";
import type { SimMounts } from "./machine.ts";
import type { SimRandom } from "./random.ts";

const podsDirectory = "/var/lib/kubelet/pods";

/** The simulated cluster's only ConfigMap: `settings`, whose key `revision` counts its changes. */
export class SimObjects implements ObjectLookup {
  #revision = 0;
  #content = contentOf(0);

  get revision(): number {
    return this.#revision;
  }

  configMap(_namespace: string, name: string): ConfigMapContent | undefined {
    return name === "settings" ? this.#content : undefined;
  }

  secret(): undefined {
    return undefined;
  }

  change(): void {
    this.#revision++;
    this.#content = contentOf(this.#revision);
  }
}

function contentOf(revision: number): ConfigMapContent {
  return { data: new Map([["revision", String(revision)]]), binaryData: new Map() };
}

/** Gives a pod volumes of some kinds, and each of its containers all of them, one by a part of it. */
export function withVolumes(pod: Pod, random: SimRandom): Pod {
  const kinds: Volume[] = [
    { name: "disk", emptyDir: {} },
    { name: "memory", emptyDir: { medium: "Memory" } },
    { name: "settings", configMap: { name: "settings" } },
    { name: "all", projected: { sources: [{ configMap: { name: "settings" } }] } },
  ];
  const volumes = kinds.filter(() => random.chance(0.4));
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

/** What of the volumes is not as wanted although there was time enough. */
export async function volumeDisagreements(
  { files, mounts, objects }: { readonly files: MemoryFiles; readonly mounts: SimMounts; readonly objects: SimObjects },
  desired: ReadonlyMap<string, Pod>,
): Promise<string[]> {
  const problems: string[] = [];
  const targets = (await mounts.list()).map(({ target }) => target);
  for (const target of targets) {
    const uid = target.slice(podsDirectory.length + 1).split("/")[0] ?? "";
    if (!desired.has(uid)) problems.push(`mount ${target} is still there`);
  }
  if (new Set(targets).size < targets.length) problems.push(`something is mounted twice: ${targets.join(" ")}`);
  for (const uid of desired.keys()) {
    for (const place of ["configmap/settings", "projected/all"]) {
      const path = `${podsDirectory}/${uid}/volumes/kubernetes.io~${place}/revision`;
      // A pod that waits or has ended has no volumes.
      if ((await files.stat(path)) === undefined) continue;
      const shown = new TextDecoder().decode(await files.read(path, 100));
      if (shown !== String(objects.revision)) problems.push(`${uid} sees revision ${shown} of ${objects.revision}`);
    }
  }
  return problems;
}
