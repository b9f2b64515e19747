import { resolve } from "node:path/posix";
import type { KubeletConfiguration } from "../config/defaults.ts";
import type { NodeFlagValues } from "../config/flags.ts";
import type { ServingSettings } from "../config/serving.ts";
import { type KubeletSettings, milliseconds } from "../config/settings.ts";
import { kubeletConfig } from "../engine/kubelet-config.ts";
import type { Node, NodeSources } from "../engine/node.ts";
import { subordinateIds } from "../engine/subordinate-ids.ts";
import type { NodeMetrics } from "../metrics/node-metrics.ts";
import type { HostAddresses } from "../node/host-addresses.ts";
import type { Logger } from "../ports/log.ts";
import type { Ports } from "../ports/ports.ts";
import type { RuntimeLayout } from "../private-runtime/layout.ts";
import type { FlightRecorder } from "../replay/flight-recorder.ts";
import type { TrackedCri } from "../runtime-service/deadlines.ts";
import type { RuntimeInfo } from "../runtime-service/features.ts";
import { withCertificates } from "./certificate-figures.ts";
import { credentialFiles } from "./credential-files.ts";
import type { credentialPlugins } from "./credential-providers.ts";
import { openCluster } from "./kubelet-cluster.ts";
import { machineInfo } from "./machine-info.ts";
import { accessChecks } from "./node-access.ts";
import { type NodeApiParts, serveNodeApi } from "./node-api.ts";
import { certificateDirectory, type NodeCredentials } from "./node-credentials.ts";
import { runNode } from "./node-process.ts";
import { servePodsApis } from "./pods-apis.ts";
import { servingCertificates } from "./serving-certificates.ts";

/** What the daemon runs with, once its configuration is read. */
export interface Daemon {
  readonly ports: Ports;
  readonly log: Logger;
  readonly configuration: KubeletConfiguration;
  readonly flags: NodeFlagValues;
  /** How its API is served; undefined: it is not. */
  readonly served: ServingSettings | undefined;
  readonly setVerbosity: (verbosity: number) => void;
  /** Aborts when it is told to end. */
  readonly told: AbortSignal;
}

/** One that holds its locks and reaches its runtime. */
export interface StartedKubelet extends Daemon {
  readonly settings: KubeletSettings;
  readonly nodeName: string;
  readonly addresses: HostAddresses;
  readonly rootDirectory: string;
  readonly layout: RuntimeLayout;
  readonly plugins: Awaited<ReturnType<typeof credentialPlugins>>;
  /** Undefined: it stands alone. */
  readonly credentials: NodeCredentials | undefined;
  readonly endpoint: string;
  /** With deadlines. */
  readonly cri: TrackedCri;
  readonly runtime: RuntimeInfo;
  readonly metrics: NodeMetrics;
  readonly recorder: FlightRecorder | undefined;
}

/** Runs the kubelet's node, with all that it serves, until it is told to end. */
export async function runKubeletNode(kubelet: StartedKubelet, made: (node: Node) => void): Promise<void> {
  const { ports, log, configuration, flags, settings, nodeName, addresses, rootDirectory } = kubelet;
  const { cri, runtime, metrics, credentials } = kubelet;
  const [machine, podIds] = await Promise.all([
    machineInfo(ports, rootDirectory),
    subordinateIds(ports.processes, settings.idsPerPod, configuration.maxPods),
  ]);
  const pullFrom = { credentialFiles: credentialFiles(rootDirectory), credentialPlugins: kubelet.plugins };
  const own = { nodeName, rootDirectory, hostIPs: addresses.list, podIds, ...pullFrom };
  const config = kubeletConfig(own, settings, machine, runtime);
  if (config.node.cgroupDriver !== settings.cgroupDriver) {
    log.info("the runtime's cgroup driver is used", { cgroupDriver: config.node.cgroupDriver });
  }
  using cluster = credentials && (await openCluster({ ...kubelet, machine, credentials }));
  const where = { nodeName, addresses, rootDirectory, ...apiFiles(flags) };
  const serving = await servingCertificates({ ...kubelet, ...where }, cluster?.client);
  const managers = [credentials?.certificates, serving].filter((manager) => manager !== undefined);
  await runNode({
    ...{ ports, layout: kubelet.layout, log, cri, runtime, config },
    runtimeEndpoint: kubelet.endpoint,
    pressure: settings.pressure,
    sources: sourcesOf(configuration),
    checks: accessChecks(kubelet.served),
    ...(cluster && { cluster: { ...cluster, certificates: () => managers.map(({ check }) => check) } }),
    // As upstream: whatever of the runtime's pods no source wants is an orphan.
    owns: async () => true,
    told: kubelet.told,
    endsWhenIdle: false,
    metrics,
    recorder: kubelet.recorder,
    subject: kubelet,
    beside: async (node, figures, signal, journal) => {
      made(node);
      const shown = { figures: withCertificates(figures, credentials?.certificates, serving), metrics };
      const api = { ...kubelet, ...where, ...shown, cri, apiClient: cluster?.client, servingCertificates: serving };
      await Promise.all([
        credentials?.run(journal, signal),
        serving?.run(journal, signal),
        serveNodeApi(api, node, signal),
        servePodsApis({ ...kubelet, metrics: metrics.podsApi }, node, signal),
      ]);
    },
  });
}

function apiFiles(flags: NodeFlagValues): Pick<NodeApiParts, "certificateDirectory" | "tokenFile" | "servesPage"> {
  const { tokenAuthFile = "", nodePage = false } = flags;
  return {
    certificateDirectory: certificateDirectory(flags),
    tokenFile: tokenAuthFile === "" ? undefined : resolve(process.cwd(), tokenAuthFile),
    servesPage: nodePage,
  };
}

function sourcesOf(configuration: KubeletConfiguration): NodeSources {
  const { staticPodPath = "", staticPodURL = "", staticPodURLHeader = {} } = configuration;
  return {
    ...(staticPodPath !== "" && {
      file: { path: staticPodPath, periodMs: milliseconds(configuration.fileCheckFrequency) },
    }),
    ...(staticPodURL !== "" && {
      http: {
        url: staticPodURL,
        headers: staticPodURLHeader,
        periodMs: milliseconds(configuration.httpCheckFrequency),
      },
    }),
  };
}
