import { ApiClient } from "../api-client/client.ts";
import { version } from "../base/version.ts";
import type { KubeletConfiguration } from "../config/defaults.ts";
import type { NodeFlagValues } from "../config/flags.ts";
import { type KubeletSettings, milliseconds } from "../config/settings.ts";
import type { ClusterSetup } from "../engine/cluster.ts";
import type { MachineInfo } from "../engine/machine.ts";
import type { NodeMetrics } from "../metrics/node-metrics.ts";
import type { NodeHostAddresses } from "../node/host-addresses.ts";
import { readBootTime, readNodeFacts } from "../node/node-facts.ts";
import { NodeMemory } from "../node/node-memory.ts";
import type { NodeRegistration } from "../node/node-registration.ts";
import type { Logger } from "../ports/log.ts";
import type { Ports } from "../ports/ports.ts";
import type { RuntimeInfo } from "../runtime-service/features.ts";
import { reportedVersion } from "../config/version-flag.ts";
import { cloudSetup } from "./cloud.ts";
import { type NodeCredentials, nodeTransport } from "./node-credentials.ts";
import { architecture } from "./platform.ts";

export interface ClusterParts {
  readonly ports: Ports;
  readonly configuration: KubeletConfiguration;
  readonly flags: NodeFlagValues;
  readonly settings: Pick<KubeletSettings, "reservations" | "countsStorage">;
  readonly credentials: NodeCredentials;
  readonly nodeName: string;
  readonly addresses: NodeHostAddresses;
  readonly machine: MachineInfo;
  readonly runtime: RuntimeInfo;
  readonly metrics: NodeMetrics;
  readonly rootDirectory: string;
  readonly log: Logger;
}

/** A node's place in the cluster; connections are closed when the result is disposed of. */
export async function openCluster(parts: ClusterParts): Promise<ClusterSetup & Disposable> {
  const { ports, configuration, nodeName, addresses, machine, runtime } = parts;
  const { reservations, countsStorage } = parts.settings;
  const counted = countsStorage ? machine : { ...machine, ephemeralStorageBytes: undefined };
  const { cloud, externalCloud } = cloudSetup(parts.flags, ports.clock);
  const transport = nodeTransport(ports, parts.credentials);
  const updatePeriodMs = milliseconds(configuration.nodeStatusUpdateFrequency);
  const leaseDurationSeconds = configuration.nodeLeaseDurationSeconds;
  const memory = new NodeMemory(ports.files, parts.log, parts.rootDirectory);
  const { host } = new URL(parts.credentials.access.server);
  const { client: requests } = parts.metrics;
  parts.metrics.nodeStart.booted(await readBootTime(ports.files));
  const client = new ApiClient(
    { transport: requests.measured(transport, host), clock: ports.clock, waited: requests.waited(host) },
    {
      requests: { perSecond: configuration.kubeAPIQPS, burst: configuration.kubeAPIBurst },
      events: { perSecond: configuration.eventRecordQPS, burst: configuration.eventBurst },
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
        kubeletVersion: reportedVersion(parts.flags.version, version),
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
      registration: { ...registrationOf(parts), staleResources: await memory.staleResources() },
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

function registrationOf({ configuration, flags }: ClusterParts): Omit<NodeRegistration, "staleResources"> {
  return {
    enabled: configuration.registerNode ?? true,
    taints: configuration.registerWithTaints ?? [],
    labels: flags.nodeLabels ?? {},
    providerId: configuration.providerID ?? "",
    controllerAttaches: configuration.enableControllerAttachDetach,
  };
}
