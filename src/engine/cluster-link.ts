import type { Pod } from "../api/pod.ts";
import type { PodUid } from "../base/ids.ts";
import type { ClusterHooks } from "../pods/cluster-hooks.ts";
import type { ClusterObjects } from "./cluster-objects.ts";
import type { Cluster } from "./cluster.ts";

/** A kubelet's connection to its cluster, which is built after the kubelet. */
export class ClusterLink implements ClusterHooks {
  readonly #objects: ClusterObjects;
  #cluster: Cluster | undefined;

  constructor(objects: ClusterObjects) {
    this.#objects = objects;
  }

  /** To be called once, before the first pod is delivered. */
  connect(cluster: Cluster): void {
    this.#cluster = cluster;
  }

  unsupported(pod: Pod): string {
    return this.#cluster?.unsupported(pod) ?? "";
  }

  place(): ReturnType<Cluster["place"]> | undefined {
    return this.#cluster?.place();
  }

  async refreshPlace(): Promise<void> {
    await this.#cluster?.refreshPlace();
  }

  runtime(): ReturnType<Cluster["runtime"]> | undefined {
    return this.#cluster?.runtime();
  }

  networkProblem(): string | undefined {
    return this.#cluster?.networkProblem();
  }

  podReleased(uid: PodUid): void {
    this.#objects.released(uid);
    this.#cluster?.podReleased(uid);
  }

  /** The desired pods changed. */
  wantedChanged(): void {
    this.#cluster?.wantedChanged();
  }

  /** The pod is removed from the node. */
  podRemoved(uid: PodUid): void {
    this.#objects.released(uid);
    this.#cluster?.wantedChanged();
  }
}
