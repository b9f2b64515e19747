import { ApiClient } from "../api-client/client.ts";
import { version } from "../base/version.ts";
import { clientLimits } from "../config/client-limits.ts";
import type { KubeletConfiguration } from "../config/defaults.ts";
import type { NodeFlagValues } from "../config/flags.ts";
import { milliseconds } from "../config/settings.ts";
import type { ClusterSetup } from "../engine/cluster.ts";
import type { MachineInfo } from "../engine/machine.ts";
import { readBootTime, readNodeFacts } from "../node/node-facts.ts";
import { NodeMemory } from "../node/node-memory.ts";
import type { NodeRegistration } from "../node/node-registration.ts";
import type { RuntimeInfo } from "../runtime-service/features.ts";
import { reportedVersion } from "../config/version-flag.ts";
import { cloudSetup } from "./cloud.ts";
import type { Daemon, PreparedDaemon } from "./daemon.ts";
import type { NodeCredentials } from "./node-credentials.ts";
import { nodeTransport } from "./node-transport.ts";
import { architecture } from "./platform.ts";

/** The cluster's dependencies besides the daemon. */
export interface ClusterFacts {
  readonly credentials: NodeCredentials;
  readonly machine: MachineInfo;
  readonly runtime: RuntimeInfo;
}

/** The connection to the cluster; it is closed when the result is disposed of. */
export async function openCluster(
  { ports, log, configuration, flags }: Daemon,
  { nodeName, addresses, settings, metrics, rootDirectory }: PreparedDaemon,
  { credentials, machine, runtime }: ClusterFacts,
): Promise<ClusterSetup & Disposable> {
  const { reservations, countsStorage } = settings;
  const counted = countsStorage ? machine : { ...machine, ephemeralStorageBytes: undefined };
  const { cloud, externalCloud } = cloudSetup(flags, ports.clock);
  const transport = nodeTransport(ports, credentials.access, credentials.certificates);
  const updatePeriodMs = milliseconds(configuration.nodeStatusUpdateFrequency);
  const leaseDurationSeconds = configuration.nodeLeaseDurationSeconds;
  const memory = new NodeMemory(ports.files, log, rootDirectory);
  const { host } = new URL(credentials.access.server);
  const { client: requests } = metrics;
  metrics.nodeStart.booted(await readBootTime(ports.files));
  const client = new ApiClient(
    { transport: requests.measured(transport, host), clock: ports.clock, waited: requests.waited(host) },
    {
      ...clientLimits(configuration),
      heartbeatTimeoutMs: Math.min(updatePeriodMs, leaseDurationSeconds * 1000),
    },
  );
  return {
    client,
    node: {
      identity: {
        name: nodeName,
        facts: await readNodeFacts(ports.files, counted),
        architecture,
        kubeletVersion: reportedVersion(flags.version, version),
        apiPort: configuration.enableServer ? configuration.port : 0,
        ...(externalCloud && { externalCloud }),
        capacity: {
          maxPods: configuration.maxPods,
          podsPerCore: configuration.podsPerCore ?? 0,
          reserved: reservations.lists,
          reservedSystemCpus: reservations.systemCpus,
          eviction: reservations.eviction,
        },
      },
      registration: { ...registrationOf(configuration, flags), staleResources: await memory.staleResources() },
      updatePeriodMs,
      reportPeriodMs: milliseconds(configuration.nodeStatusReportFrequency),
    },
    onRegistered: () => void memory.registered(),
    cloud,
    addresses,
    runtime,
    leaseDurationSeconds,
    maxImages: configuration.nodeStatusMaxImages,
    [Symbol.dispose]: () => transport[Symbol.dispose](),
  };
}

function registrationOf(
  configuration: KubeletConfiguration,
  flags: NodeFlagValues,
): Omit<NodeRegistration, "staleResources"> {
  return {
    enabled: configuration.registerNode ?? true,
    taints: configuration.registerWithTaints ?? [],
    labels: flags.nodeLabels ?? {},
    providerId: configuration.providerID ?? "",
    controllerAttaches: configuration.enableControllerAttachDetach,
  };
}
