import type { Pod } from "../../api/pod.ts";
import type { ClaimManifest } from "../../api/storage-manifest.ts";
import { RunClaims } from "../../claims/run-claims.ts";
import type { Recorder } from "../../journal/entry.ts";
import type { Kubelet } from "../../kubelet/kubelet.ts";
import { NodeVolumes } from "../../node/node-volumes.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Ports } from "../../ports/ports.ts";
import { RunStore } from "../../sources/run-store.ts";
import type { ClusterVolumes } from "../../volumes/volume-manager.ts";
import { silentLog } from "../machine.ts";
import { usualConfig } from "./node-config.ts";

/** The directory of claims' data. */
export const claimDirectories = "/var/lib/podwright/volumes";

/** The claim that every pod may use. */
const data: ClaimManifest = {
  apiVersion: "v1",
  kind: "PersistentVolumeClaim",
  metadata: { name: "data" },
  spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
};

/** Delay until a claim that could not be stored is given again. */
const givenAgainMs = 10_000;

/** The claims of one run of a standalone node, as `podwright run` keeps them. */
export class SimClaims {
  readonly volumes: ClusterVolumes;
  readonly #claims: RunClaims;
  readonly #clock: Clock;

  /** @param pods desired ones, and those that still exist */
  constructor(
    ports: Pick<Ports, "clock" | "random" | "files" | "mounts">,
    journal: Recorder,
    pods: () => readonly Pod[],
  ) {
    const { clock, random, files, mounts } = ports;
    const store = new RunStore(files, "/var/lib/podwright/claims");
    const nodeLabels = { "kubernetes.io/hostname": "node1" };
    this.#clock = clock;
    this.#claims = new RunClaims(
      { ...{ clock, random, files, mounts, store, pods, journal }, log: silentLog },
      { directories: claimDirectories, podsDirectory: `${usualConfig.node.rootDirectory}/pods`, nodeLabels },
    );
    this.volumes = {
      ...{ storage: this.#claims, node: new NodeVolumes(), byController: false },
      labels: () => nodeLabels,
    };
  }

  /** Rejects if stored objects cannot be read: podwright then exits and is restarted. */
  async run(kubelet: Kubelet, signal: AbortSignal): Promise<void> {
    kubelet.workers.onRemoved(() => this.#claims.podGone());
    await this.#claims.load();
    while (!signal.aborted && !(await this.#give())) {
      await this.#clock.sleep("the claim to be given again", givenAgainMs, signal).catch(() => {});
    }
    await this.#claims.run(kubelet.startUp.when("allKnown"), signal);
  }

  async #give(): Promise<boolean> {
    return await this.#claims.take([data], []).then(
      () => true,
      () => false,
    );
  }
}
