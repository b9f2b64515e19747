import type { ApiClient } from "../api-client/client.ts";
import type { CertificateManager } from "../certificates/certificate-manager.ts";
import { configurationInUse } from "../config/configuration-in-use.ts";
import type { KubeletConfiguration } from "../config/defaults.ts";
import { milliseconds } from "../config/settings.ts";
import { kubeletConfig } from "../engine/kubelet-config.ts";
import type { MachineInfo } from "../engine/machine.ts";
import type { Node, NodeSources } from "../engine/node.ts";
import { subordinateIds } from "../engine/subordinate-ids.ts";
import type { KubeletConfig } from "../kubelet/config.ts";
import type { NodeFigures } from "../node-api/stats-routes.ts";
import type { PodIds } from "../runtime/config/id-ranges.ts";
import type { RuntimeInfo } from "../runtime-service/features.ts";
import type { ApiSubject } from "./api-dependencies.ts";
import { withCertificates } from "./certificate-figures.ts";
import { credentialFiles } from "./credential-files.ts";
import type { Daemon, PreparedDaemon, RuntimeConnection } from "./daemon.ts";
import { openCluster } from "./kubelet-cluster.ts";
import { evictionSettings } from "./evictions.ts";
import { kubeletImageGarbage } from "./image-garbage.ts";
import { machineInfo } from "./machine-info.ts";
import { accessChecks, tokenFileOf } from "./node-access.ts";
import { serveNodeApi } from "./node-api.ts";
import { certificateDirectory } from "./node-credentials.ts";
import { runNode } from "./node-process.ts";
import { nodeRooms } from "./node-rooms.ts";
import { servePodsApis } from "./pods-apis.ts";
import { type CertificateParts, servingCertificates } from "./serving-certificates.ts";

/** Runs the kubelet's node and its servers, until it is asked to stop. */
export async function runKubeletNode(
  daemon: Daemon,
  prepared: PreparedDaemon,
  runtime: RuntimeConnection,
  made: (node: Node) => void,
): Promise<void> {
  const { ports, log, configuration, flags, served, setVerbosity } = daemon;
  const { settings, nodeName, addresses, rootDirectory, layout, credentials, metrics, recorder } = prepared;
  const [machine, podIds] = await Promise.all([
    machineInfo(ports, rootDirectory),
    subordinateIds(ports.processes, settings.idsPerPod, configuration.maxPods),
  ]);
  const config = configOf(prepared, podIds, machine, runtime.info);
  if (config.node.cgroupDriver !== settings.cgroupDriver) {
    log.info("using the container runtime's cgroup driver", { cgroupDriver: config.node.cgroupDriver });
  }
  using opened = credentials && (await openCluster(daemon, prepared, { credentials, machine, runtime: runtime.info }));
  const directory = certificateDirectory(flags);
  const from: CertificateParts = { ports, log, configuration, nodeName, addresses, certificateDirectory: directory };
  const serving = await servingCertificates(from, opened?.client);
  const managers = [credentials?.certificates, serving].filter((manager) => manager !== undefined);
  const cluster = opened && { ...opened, certificates: () => managers.map(({ check }) => check) };
  const inUse = configurationInUse(configuration, { ...config.node, certificateDirectory: directory });
  const subject: ApiSubject = { configuration: inUse, flags, rootDirectory, setVerbosity };
  const serve = serveApis(daemon, { runtime, prepared, subject, from, serving, client: opened?.client });
  await runNode({
    ports,
    layout,
    log,
    metrics,
    recorder,
    runtime,
    config,
    subject,
    sources: sourcesOf(configuration),
    // As upstream: every pod of the runtime that no source has is an orphan.
    owns: async () => true,
    checks: accessChecks(served),
    cluster,
    eviction: evictionSettings(settings.eviction, ports.cgroups.version, flags),
    rooms: (journal) => nodeRooms(daemon, prepared, config, journal, opened?.client),
    imageGarbage: kubeletImageGarbage(settings.imageGarbage),
    ownsPodLogs: true,
    termination: prepared.termination,
    endsWhenIdle: false,
    beside: async (node, figures, signal, journal) => {
      made(node);
      await Promise.all([
        credentials?.run(journal, signal),
        serving?.run(journal, signal),
        serve(node, figures, signal),
      ]);
    },
  });
}

interface Served {
  readonly prepared: PreparedDaemon;
  readonly runtime: RuntimeConnection;
  readonly subject: ApiSubject;
  readonly from: CertificateParts;
  /** Gets the serving certificate from the cluster's signer; undefined: it comes from files. */
  readonly serving: CertificateManager | undefined;
  readonly client: ApiClient | undefined;
}

/** The servers of a node's APIs, on its port and on local sockets. */
function serveApis(
  { ports, log, configuration, flags, served }: Daemon,
  { prepared, runtime, subject, from, serving, client }: Served,
): (node: Node, figures: NodeFigures, signal: AbortSignal) => Promise<void> {
  const { rootDirectory, metrics, credentials } = prepared;
  const { nodePage: servesPage = false } = flags;
  const tokenFile = tokenFileOf(flags);
  return async (node, figures, signal) => {
    const shown = withCertificates(figures, credentials?.certificates, serving);
    const api = {
      subject,
      certificates: { from, manager: serving },
      access: { tokenFile, apiClient: client },
      cri: runtime.cri,
      served,
      servesPage,
      figures: shown,
      metrics,
    };
    await Promise.all([
      serveNodeApi(api, node, signal),
      servePodsApis({ ports, log, configuration, rootDirectory, metrics: metrics.podsApi }, node, signal),
    ]);
  };
}

function configOf(
  { settings, nodeName, addresses, rootDirectory, plugins }: PreparedDaemon,
  podIds: PodIds,
  machine: MachineInfo,
  runtime: RuntimeInfo,
): KubeletConfig {
  const identity = {
    nodeName,
    rootDirectory,
    hostIPs: addresses.list,
    podIds,
    credentialFiles: credentialFiles(rootDirectory),
    credentialPlugins: plugins,
  };
  return kubeletConfig(identity, settings, machine, runtime);
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
