import type { ApiClient } from "../api-client/client.ts";
import { Reflector } from "../api-client/reflector.ts";
import type { WatchNews } from "../api-client/watch-news.ts";
import { onAbort } from "../base/abort.ts";
import type { Pod } from "../api/pod.ts";
import type { PodUid } from "../base/ids.ts";
import type { PullAccount } from "../images/credential-provider.ts";
import type { Recorder } from "../journal/entry.ts";
import { ApiObjects, type Watcher } from "../objects/api-objects.ts";
import { PodObjects } from "../objects/pod-objects.ts";
import { ServiceAccountTokens } from "../objects/service-account-tokens.ts";
import { runtimeClasses } from "../objects/runtime-classes.ts";
import { pullAccount } from "../objects/service-accounts.ts";
import { ServiceMemory } from "../objects/service-memory.ts";
import { type Service, services as serviceResource } from "../objects/service-variables.ts";
import { StorageObjects } from "../objects/storage-objects.ts";
import { Collection } from "../objects/collection.ts";
import type { ApiAccess } from "../kubelet/api-access.ts";
import type { PodWorkers } from "../pods/pod-workers.ts";
import type { Files } from "../ports/files.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import type { Random } from "../ports/random.ts";
import type { PodUpdate } from "../sources/source.ts";

export interface ClusterObjectsDependencies {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly journal: Recorder;
  readonly log: Logger;
  /** Of all watches of the API server. */
  readonly news: WatchNews;
  readonly files: Files;
  /** Where services are remembered. */
  readonly servicesFile: string;
}

/** What the pods of a cluster's node refer to: ConfigMaps, Secrets, tokens, services and runtime classes. */
export class ClusterObjects {
  readonly lookup: PodObjects;
  /** What is behind claims. */
  readonly storage: StorageObjects;
  readonly access: ApiAccess;
  readonly #deps: ClusterObjectsDependencies;
  readonly #objects: ApiObjects;
  readonly #tokens: ServiceAccountTokens;
  readonly #memory: ServiceMemory;
  #workers: Pick<PodWorkers, "objectsChanged" | "wake"> | undefined;

  constructor(deps: ClusterObjectsDependencies) {
    this.#deps = deps;
    this.storage = new StorageObjects(deps.client);
    const { client, clock, random, journal } = deps;
    const watch: Watcher = (target, handler, signal) => new Reflector(deps, target, handler).run(signal);
    this.#objects = new ApiObjects({
      journal,
      watch,
      objectsChanged: (changed, cause) => this.#workers?.objectsChanged(changed, cause),
    });
    this.#tokens = new ServiceAccountTokens({
      client,
      clock,
      random,
      journal,
      renewed: ({ metadata: { uid } }, cause) => this.#workers?.wake(uid, cause),
    });
    this.access = { watch, tokens: this.#tokens };
    const account = (pod: Pod): PullAccount | undefined => pullAccount({ client, tokens: this.#tokens }, pod);
    const services = new Collection<Service>();
    this.#memory = new ServiceMemory(deps, deps.servicesFile, services);
    this.lookup = new PodObjects(deps.clock, this.#objects, this.#tokens, account, { services, memory: this.#memory });
  }

  /** Sets the receiver of changes. To be called once, before the first pod is delivered. */
  connect(workers: Pick<PodWorkers, "objectsChanged" | "wake">): void {
    this.#workers = workers;
  }

  /**
   * A pod is wanted, before its worker learns of it.
   * @param hadEnded it had ended before this run
   */
  wanted({ op, source, pod }: PodUpdate, hadEnded: boolean): void {
    if (source !== "api" || op === "remove") return;
    // A pod that has ended in this run may still change.
    if (op === "add" ? !hadEnded : this.#objects.has(pod.metadata.uid)) this.#objects.add(pod);
  }

  /** The pod has ended for good and its volumes are gone, or the pod is gone. May be called repeatedly. */
  released(uid: PodUid): void {
    this.#objects.remove(uid);
    this.#tokens.remove(uid);
  }

  /** Keeps up with services and runtime classes until the signal aborts; then nothing is watched any more. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    using _stop = onAbort(signal, () => {
      this.#objects.stop();
      this.#tokens.stop();
    });
    const withAddress = { name: "services", resource: serviceResource, fieldSelector: "spec.clusterIP!=None" };
    const classes = { name: "runtime classes", resource: runtimeClasses };
    await Promise.all([
      new Reflector(this.#deps, withAddress, this.lookup.services).run(signal),
      new Reflector(this.#deps, classes, this.lookup.runtimeClasses).run(signal),
      this.#memory.run(signal),
    ]);
  }
}
