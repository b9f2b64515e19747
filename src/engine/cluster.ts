import type { ApiClient } from "../api-client/client.ts";
import { Reflector, type ReflectorHandler, type ReflectorTarget } from "../api-client/reflector.ts";
import type { WatchNews } from "../api-client/watch-news.ts";
import type { ApiObject } from "../api-client/resource.ts";
import type { PodUid } from "../base/ids.ts";
import type { CloudProvider } from "../cloud/cloud-provider.ts";
import { CloudResourceSync } from "../cloud/cloud-resource-sync.ts";
import type { NodeObject } from "../api/node.ts";
import { isStaticPod } from "../api/pod-kind.ts";
import type { Pod } from "../api/pod.ts";
import { errorMessage } from "../base/errors.ts";
import type { NodePressure } from "../eviction/pressure-monitor.ts";
import type { JournalInput } from "../journal/entry.ts";
import type { Journal } from "../journal/journal.ts";
import type { Kubelet } from "../kubelet/kubelet.ts";
import { EventRecorder } from "../events/event-recorder.ts";
import type { NodeVolumes } from "../node/node-volumes.ts";
import { NodeImages } from "../node/node-images.ts";
import type { NodeProblem } from "../node/node-problem.ts";
import type { NodeHostAddresses } from "../node/host-addresses.ts";
import { NodeLease } from "../node/lease.ts";
import { NodeSync, type NodeSyncConfig } from "../node/node-sync.ts";
import type { NodeObservation, RuntimeFacts } from "../node/node-status.ts";
import { nodes } from "../node/resources.ts";
import { Annotation } from "../runtime/config/labels.ts";
import { RuntimeState } from "../node/runtime-state.ts";
import type { ClusterHooks } from "../pods/cluster-hooks.ts";
import type { NodePlace } from "../pods/predicates.ts";
import { MirrorPods } from "../pods/mirror-pods.ts";
import type { Clock } from "../ports/clock.ts";
import type { Cri } from "../ports/cri.ts";
import type { Logger } from "../ports/log.ts";
import type { Random } from "../ports/random.ts";
import { type ApiPod, apiPods } from "../sources/api-pod.ts";
import { ApiSource } from "../sources/api-source.ts";
import type { PodMux } from "../sources/mux.ts";
import type { SourceChange, SourceState } from "../sources/source.ts";
import { type IgnoredPodDependencies, IgnoredPods } from "../status/ignored-pods.ts";
import { StatusSync } from "../status/status-sync.ts";
import { takeUpWithoutServer, type WithoutServerDependencies } from "./without-server.ts";

/** A node's place in a cluster. */
export interface ClusterSetup {
  readonly client: ApiClient;
  readonly node: NodeSyncConfig;
  /** Called when the Node is registered, or was found. */
  readonly onRegistered?: (node: NodeObject) => void;
  readonly addresses: NodeHostAddresses;
  /** As it was when podwright started. */
  readonly runtime: RuntimeFacts;
  readonly leaseDurationSeconds: number;
  /** nodeStatusMaxImages. */
  readonly maxImages: number;
  /** The cloud to query about the machine; undefined: none. */
  readonly cloud?: { readonly provider: CloudProvider; readonly nodeIps: readonly string[] } | undefined;
  /** Events of the node, sent once at each start. */
  readonly notes?: readonly JournalInput[] | undefined;
  /** The state of the node's certificates. */
  readonly certificates?: () => readonly Check[];
}

interface Check {
  readonly name: string;
  readonly ok: boolean;
  readonly detail: string;
}

export interface ClusterDependencies {
  readonly clock: Clock;
  readonly random: Random;
  readonly journal: Pick<Journal, "record" | "follow">;
  readonly log: Logger;
  /** Of all watches of the API server. */
  readonly news: WatchNews;
  readonly cri: Cri;
  readonly kubelet: Pick<Kubelet, "statuses" | "plegHealth" | "pods" | "resolved" | "workers" | "startUp">;
  readonly mux: Pick<PodMux, "statics" | "ignored" | "allSourcesSeen">;
  /** Undefined: the machine is not observed. */
  readonly pressure?: NodePressure | undefined;
  /** Volumes that the Node's status lists. */
  readonly volumes: NodeVolumes;
  /** What else may keep the node from being ready. */
  readonly problems: readonly NodeProblem[];
  /** The API server's pods among the running ones, from their checkpoints. */
  readonly lastKnown: (running: readonly PodUid[]) => Promise<readonly Pod[]>;
  /** Takes all that the API server wants of this node. */
  readonly deliver: (state: SourceState) => void;
  /** Takes one change of it. */
  readonly change: (change: SourceChange) => void;
}

/**
 * What makes a kubelet a node of a cluster: its pods come from the API server, their statuses go there, and its own Node,
 * lease and mirror pods are kept there. Without the API server all this waits, and pods run on.
 */
export class Cluster implements ClusterHooks {
  readonly #deps: ClusterDependencies;
  readonly #setup: ClusterSetup;
  readonly #source: ApiSource;
  readonly #statuses: StatusSync;
  readonly #mirrors: MirrorPods;
  readonly #ignored: IgnoredPods;
  readonly #node: NodeSync;
  readonly #lease: NodeLease;
  readonly #runtime: RuntimeState;
  readonly #images: NodeImages;
  readonly #events: EventRecorder;
  readonly #cloud: CloudResourceSync | undefined;

  constructor(deps: ClusterDependencies, setup: ClusterSetup) {
    const { clock, random, journal, cri, kubelet, mux } = deps;
    const { client } = setup;
    const log = deps.log.child({ component: "cluster" });
    const nodeName = setup.node.identity.name;
    this.#deps = { ...deps, log };
    this.#setup = setup;
    this.#statuses = new StatusSync({
      ...{ client, clock, journal, log, statuses: kubelet.statuses },
      conditionsChanged: (uid, cause) => kubelet.workers.wake(uid, cause),
      mirrorRefused: (uid) => this.#mirrors.refused(uid),
      manifestHash: (uid) => manifestHash(kubelet.pods.get(uid)),
    });
    this.#images = new NodeImages({ clock, images: cri.images, log }, setup.maxImages, () => this.#node.wake());
    this.#events = new EventRecorder({ client, clock, random, log, nodeName, pod: (uid) => kubelet.pods.get(uid) });
    const nodeUid = (): string | undefined => this.#node.uid;
    this.#mirrors = new MirrorPods({
      client,
      clock,
      journal,
      log,
      nodeName,
      nodeUid,
      statics: () => mux.statics().map((pod) => kubelet.resolved(pod)),
      own: () => kubelet.pods.statics(),
      allKnown: () => mux.allSourcesSeen() && kubelet.startUp.has("allKnown"),
    });
    this.#ignored = new IgnoredPods({ clock, statuses: kubelet.statuses, ...this.#ignoredPods() });
    this.#source = new ApiSource(deps, {
      podSeen: (pod) => this.#podSeen(pod),
      podGone: (pod) => this.#podGone(pod),
      podsKnown: () => this.#mirrors.podsKnown(),
    });
    const networkUp = (): void =>
      kubelet.workers.networkUp({ code: "NetworkReady", message: "the runtime's network is ready" });
    const asking = { clock, runtime: cri.runtime, log };
    this.#runtime = new RuntimeState(asking, setup.runtime, () => this.#node.wake(), networkUp);
    this.#node = new NodeSync(
      {
        client,
        clock,
        random,
        journal,
        log,
        volumes: deps.volumes,
        observe: (signal) => this.#observe(signal),
        addressesPublished: (addresses) => setup.addresses.published(addresses),
        podCidr: async (podCidr, within) => {
          await cri.runtime.updateRuntimeConfig({ runtimeConfig: { networkConfig: { podCidr } } }, { signal: within });
        },
        onRegistered: (node) => {
          this.#mirrors.wake();
          this.#lease.wake();
          setup.onRegistered?.(node);
        },
      },
      setup.node,
    );
    this.#cloud =
      setup.cloud &&
      new CloudResourceSync(
        { ...setup.cloud, clock, random, journal, log, onChange: () => this.#node.wake() },
        { nodeIps: setup.cloud.nodeIps, periodMs: setup.node.updatePeriodMs },
      );
    const onStoreRestored = (): void => deps.news.storeRestored();
    const leaseDeps = { client, clock, random, log, nodeName, nodeUid, onStoreRestored };
    this.#lease = new NodeLease(leaseDeps, setup.leaseDurationSeconds);
  }

  unsupported({ metadata }: Pod): string {
    return this.#source.get(metadata.uid)?.unsupported ?? "";
  }

  place(): NodePlace {
    return this.#node.place();
  }

  async refreshPlace(): Promise<void> {
    await this.#node.refresh();
  }

  runtime(): RuntimeFacts {
    return this.#runtime.facts;
  }

  networkProblem(): string | undefined {
    return this.#runtime.networkProblem;
  }

  /** The number of mirror pods at the API server. */
  get mirrorPods(): number {
    return this.#mirrors.count;
  }

  podReleased(uid: PodUid): void {
    this.#statuses.released(uid);
  }

  /** What is wanted of the node has changed, or a pod of it is gone. */
  wantedChanged(): void {
    this.#mirrors.wake();
    this.#ignored.wake();
  }

  health(): Check[] {
    const { renewedAtMs } = this.#lease;
    const ageMs = renewedAtMs === undefined ? undefined : this.#deps.clock.monotonic() - renewedAtMs;
    const renewed =
      ageMs === undefined ? "the lease was never renewed" : `lease renewed ${(ageMs / 1000).toFixed(1)} s ago`;
    return [
      {
        name: "apiserver",
        ok: ageMs !== undefined && ageMs < this.#setup.leaseDurationSeconds * 1000,
        detail: `${renewed}, ${this.#statuses.waiting} pod statuses to be sent`,
      },
      ...(this.#cloud === undefined ? [] : [this.#cloud.check()]),
      ...(this.#setup.certificates?.() ?? []),
    ];
  }

  /** Works until the signal aborts. Never rejects but for a defect. */
  async run(signal: AbortSignal): Promise<void> {
    using _pressure = this.#deps.pressure?.onChange(() => this.#node.wake());
    using watched = new DisposableStack();
    for (const problem of this.#deps.problems) watched.use(problem.onChange(() => this.#node.wake()));
    const { name } = this.#setup.node.identity;
    const ofNode = { name: "pods of this node", resource: apiPods, fieldSelector: `spec.nodeName=${name}` };
    const own = { name: "Node of this node", resource: nodes, fieldSelector: `metadata.name=${name}` };
    const entries = this.#deps.journal.follow({}, signal);
    for (const note of this.#setup.notes ?? []) this.#deps.journal.record(note);
    await Promise.all([
      this.#events.run(entries, signal),
      this.#runtime.run(signal),
      this.#cloud?.run(signal),
      this.#node.run(signal),
      this.#lease.run(signal),
      this.#statuses.run(signal),
      this.#mirrors.run(signal),
      this.#ignored.run(signal),
      this.#reflector(own, this.#node).run(signal),
      takeUpWithoutServer(this.#withoutServer(), signal),
      // As upstream: whether a pod may run here depends on what the Node says.
      this.#node.known(signal).then(() => this.#reflector(ofNode, this.#source).run(signal)),
    ]);
  }

  #withoutServer(): WithoutServerDependencies {
    return { ...this.#deps, runtime: this.#deps.cri.runtime, isAnswered: () => this.#source.isKnown };
  }

  #reflector<T extends ApiObject>(target: ReflectorTarget<T>, handler: ReflectorHandler<T>): Reflector<T> {
    return new Reflector({ ...this.#deps, client: this.#setup.client }, target, handler);
  }

  #podSeen(pod: ApiPod): void {
    this.#statuses.podSeen(pod);
    this.#mirrors.podSeen(pod);
  }

  #podGone(pod: ApiPod): void {
    this.#statuses.podGone(pod);
    this.#mirrors.podGone(pod);
    this.#ignored.podGone(pod.metadata.uid);
  }

  /** The API server's pods whose names static pods have. */
  #ignoredPods(): Pick<IgnoredPodDependencies, "ignored" | "mayHave" | "released"> {
    const { kubelet, mux } = this.#deps;
    return {
      ignored: () =>
        mux.ignored().flatMap(({ pod, source, holder }) => {
          const known = source === "api" && holder !== "api" ? this.#source.get(pod.metadata.uid) : undefined;
          return known === undefined ? [] : [known];
        }),
      mayHave: (uid) => !kubelet.startUp.has("allKnown") || kubelet.pods.has(uid),
      released: (uid) => this.#statuses.released(uid),
    };
  }

  async #observe(signal: AbortSignal): Promise<NodeObservation> {
    const { clock, kubelet, log } = this.#deps;
    const { pressure } = this.#deps;
    await Promise.all([this.#runtime.known(signal), this.#cloud?.known(signal), pressure?.known(signal)]);
    const images = await this.#images.list(signal).catch((error: unknown) => {
      signal.throwIfAborted();
      log.warn("cannot list the node's images", { error: errorMessage(error) });
      return [];
    });
    const { ok, detail } = kubelet.plegHealth;
    const runtimeProblems = this.#runtime.problems(ok ? [] : [`PLEG is not healthy: ${detail}`]);
    const problems = [...runtimeProblems, ...this.#deps.problems.flatMap(({ problem = [] }) => problem)];
    const addresses = await this.#setup.addresses.look(signal);
    const { facts: cloud } = this.#cloud ?? {};
    const runtime = this.#runtime.facts;
    const { used: volumesInUse, isComplete } = this.#deps.volumes;
    const { pressures } = pressure ?? {};
    const volumes = { volumesInUse, keepsVolumesInUse: !isComplete };
    return { now: clock.now(), addresses, runtime, problems, images, cloud, pressures, ...volumes };
  }
}

function manifestHash(pod: Pod | undefined): string | undefined {
  return pod && isStaticPod(pod) ? pod.metadata.annotations?.[Annotation.configHash] : undefined;
}
