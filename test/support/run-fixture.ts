import type { ConfigMapManifest, PodManifest, SecretManifest } from "../../src/api/pod.ts";
import type { ChangedObject } from "../../src/api/referenced-objects.ts";
import { type PodUid, podUid } from "../../src/base/ids.ts";
import type { PodRef } from "../../src/journal/entry.ts";
import type { Random } from "../../src/ports/random.ts";
import { MemoryFiles } from "../../src/sim/files.ts";
import { RunSource } from "../../src/sources/run-source.ts";
import { SourceHarness } from "./sources.ts";

export const directory = "/state/manifests";

export class RunFixture extends SourceHarness {
  readonly files = new MemoryFiles(this.clock);
  #drawn = 0;
  readonly random: Random = { uniform: () => 0, bytes: (count) => new Uint8Array(count).fill(++this.#drawn) };
  readonly objectChanges: string[] = [];
  readonly ended = new Set<PodUid>();
  readonly hasEnded = (uid: PodUid): boolean => this.ended.has(uid);
  readonly objectsChanged = (objects: readonly ChangedObject[]): void => {
    this.objectChanges.push(...objects.map(({ kind, namespace, name }) => `${kind} ${namespace}/${name}`));
  };
  source = new RunSource(this, { directory });

  /** The next run of podwright on the same disk. */
  async restart(): Promise<void> {
    this.source = new RunSource(this, { directory });
    await this.source.load();
  }

  /** The desired pod of a name. */
  ref(name: string): PodRef {
    const found = this.delivered.at(-1)?.pods.find(({ pod: { metadata } }) => metadata.name === name);
    return { namespace: "default", name, uid: found?.pod.metadata.uid ?? podUid("none") };
  }

  get uids(): string[] | undefined {
    return this.delivered.at(-1)?.pods.map(({ pod }) => pod.metadata.uid);
  }
}

export const pod = (
  name: string,
  image = "busybox",
  env: PodManifest["spec"]["containers"][number]["env"] = [],
): PodManifest => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name },
  spec: { containers: [{ name: "c", image, env }] },
});
export const configMap: ConfigMapManifest = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "m" },
  data: { k: "v" },
};
export const secret: SecretManifest = {
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name: "s" },
  data: { a: "aHVudGVyMg==" },
  stringData: { b: "text" },
};
export const nothing = { pods: [], configMaps: [], secrets: [] };

export async function started(): Promise<RunFixture> {
  const fixture = new RunFixture();
  await fixture.source.load();
  return fixture;
}
