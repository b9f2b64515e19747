import type { Pod } from "../api/pod.ts";
import type { PodUid } from "../base/ids.ts";
import type { JournalInput } from "../journal/entry.ts";
import { CsiMetrics } from "./csi-metrics.ts";
import { ClientMetrics } from "./client-metrics.ts";
import { EntryMetrics } from "./entry-metrics.ts";
import type { Family } from "./family.ts";
import { HttpMetrics } from "./http-metrics.ts";
import { NodeStartMetrics } from "./node-start-metrics.ts";
import { podGauges, type PodCounts } from "./pod-gauges.ts";
import { PodsApiMetrics } from "./pods-api-metrics.ts";
import { Registry } from "./registry.ts";
import { ResizeMetrics } from "./resize-metrics.ts";
import { RuntimeMetrics } from "./runtime-metrics.ts";
import { ShutdownMetrics } from "./shutdown-metrics.ts";

/** The constant facts of a node. */
export interface NodeFacts {
  readonly nodeName: string;
  /** Of the kubelet, beginning with the release of Kubernetes that it stands in for: `v1.36.2+podwright.0.1.0`. */
  readonly version: string;
  readonly platform: string;
  readonly cgroupVersion: 1 | 2;
  /** The release of Kubernetes that no longer supports the container runtime, `1.37.0`; undefined: none is known. */
  readonly runtimeUnsupportedFrom: string | undefined;
  /** `sha256:…` of the files that name plugins for credentials; undefined: there are none. */
  readonly credentialConfigHash: string | undefined;
  /** Feature gates as they are set, each with its stage in upstream's words. */
  readonly features: readonly { readonly name: string; readonly stage: string; readonly enabled: boolean }[];
}

/** What metrics read when they are scraped. */
export interface MetricsSources {
  readonly pods: () => PodCounts;
  readonly pod: (uid: PodUid) => Pod | undefined;
}

/** All metrics of a node for `/metrics`. They observe and decide nothing. */
export class NodeMetrics {
  readonly registry = new Registry();
  readonly #probes = new Registry();
  readonly runtime: RuntimeMetrics;
  readonly http: HttpMetrics;
  readonly client: ClientMetrics;
  readonly podsApi: PodsApiMetrics;
  readonly nodeStart: NodeStartMetrics;
  readonly shutdown: ShutdownMetrics;
  readonly csi: CsiMetrics;
  readonly #entries: EntryMetrics;
  readonly #resizes: ResizeMetrics;
  #sources: MetricsSources = { pods: () => ({ pods: [], mirrorPods: 0 }), pod: () => undefined };

  constructor(clock: { now(): number; monotonic(): number }) {
    this.runtime = new RuntimeMetrics(this.registry, this.#probes, clock);
    this.http = new HttpMetrics(this.registry, clock);
    this.client = new ClientMetrics(this.registry, clock);
    this.podsApi = new PodsApiMetrics(this.registry);
    this.nodeStart = new NodeStartMetrics(this.registry, clock);
    this.shutdown = new ShutdownMetrics(this.registry);
    this.csi = new CsiMetrics(this.registry);
    this.#entries = new EntryMetrics(this.registry, {
      pod: (uid) => this.#sources.pod(uid),
      now: () => clock.now(),
    });
    this.#resizes = new ResizeMetrics(this.registry, () => clock.now());
  }

  /** To be called once, when the node exists. */
  attach(sources: MetricsSources): void {
    this.#sources = sources;
  }

  recorded(entry: JournalInput): void {
    this.#entries.recorded(entry);
    this.#resizes.recorded(entry);
    this.nodeStart.recorded(entry);
    if (entry.what === "PodFinished" && entry.pod !== undefined) this.runtime.podFinished(entry.pod.uid);
  }

  podAdded(pod: Pod): void {
    this.#entries.added(pod);
    this.#resizes.added(pod);
    this.runtime.podAdded(pod.metadata.uid);
  }

  podChanged(pod: Pod): void {
    this.#resizes.changed(pod);
  }

  /** `/metrics`, without what has to be read from files. */
  families(facts: NodeFacts): Family[] {
    return [...this.registry.families(), ...podGauges(this.#sources.pods()), ...factFamilies(facts)];
  }

  /** `/metrics/probes` */
  probeFamilies(): Family[] {
    return this.#probes.families();
  }
}

function factFamilies(facts: NodeFacts): Family[] {
  const { nodeName, version, platform, cgroupVersion, credentialConfigHash, runtimeUnsupportedFrom } = facts;
  const [, major = "", minor = ""] = /^v(\d+)\.(\d+)/u.exec(version) ?? [];
  const info = (name: string, help: string, labels: Readonly<Record<string, string>>, stable = false): Family => {
    const stability = stable ? "BETA" : "ALPHA";
    const samples = [{ labels: Object.values(labels), value: 1 }];
    return { name, help, type: "gauge", stability, labels: Object.keys(labels), samples };
  };
  const build = {
    build_date: "",
    compiler: "",
    git_commit: "",
    git_tree_state: "",
    git_version: version,
    go_version: "",
    major,
    minor,
    platform,
  };
  return [
    info("kubelet_node_name", "Always 1; labelled with the node's name", { node: nodeName }),
    info("kubelet_metrics_provider", "Always 1; labelled with the source of container statistics", {
      provider: "cadvisor",
    }),
    info("kubernetes_build_info", "Always 1; labelled with the version", build, true),
    {
      name: "kubelet_cgroup_version",
      help: "Cgroup version of the machine",
      type: "gauge",
      stability: "ALPHA",
      labels: [],
      samples: [{ labels: [], value: cgroupVersion }],
    },
    {
      name: "kubelet_cri_losing_support",
      help: "Always 1; labelled with the Kubernetes version that will not support the container runtime any more",
      type: "gauge",
      stability: "ALPHA",
      labels: ["version"],
      samples: runtimeUnsupportedFrom === undefined ? [] : [{ labels: [runtimeUnsupportedFrom], value: 1 }],
    },
    {
      name: "kubelet_credential_provider_config_info",
      help: "Information about the last applied credential provider configuration with hash as label",
      type: "gauge",
      stability: "ALPHA",
      labels: ["hash"],
      samples: credentialConfigHash === undefined ? [] : [{ labels: [credentialConfigHash], value: 1 }],
    },
    {
      name: "kubernetes_feature_enabled",
      help: "This metric records the data about the stage and enablement of a k8s feature.",
      type: "gauge",
      stability: "BETA",
      labels: ["name", "stage"],
      samples: facts.features.map(({ name, stage, enabled }) => ({ labels: [name, stage], value: enabled ? 1 : 0 })),
    },
  ];
}
