import { ApiClient } from "../../api-client/client.ts";
import type { ClusterSetup } from "../../engine/cluster.ts";
import { fixedAddresses } from "../../node/host-addresses.ts";
import type { Clock } from "../../ports/clock.ts";
import type { KubeTransport } from "../../ports/kube-api.ts";
import type { RuntimeHandlerInfo } from "../../runtime-service/features.ts";
import { clusterNodeName } from "./cluster.ts";

/** A client with upstream's limits. */
export function simApiClient(transport: KubeTransport, clock: Clock): ApiClient {
  const requests = { perSecond: 50, burst: 100 };
  return new ApiClient({ transport, clock }, { requests, events: requests, heartbeatTimeoutMs: 10_000 });
}

/** The cluster configuration of a typical node, with upstream's defaults. */
export function simClusterSetup(client: ApiClient, handlers: readonly RuntimeHandlerInfo[]): ClusterSetup {
  return {
    client,
    node: {
      identity: {
        name: clusterNodeName,
        facts: {
          processors: 4,
          memoryBytes: 8n << 30n,
          swapBytes: 0n,
          hugePages: [],
          kernelVersion: "6.8.0",
          osImage: "Linux",
          machineId: "simulated",
          systemUuid: "simulated",
          bootId: "simulated",
        },
        architecture: "amd64",
        kubeletVersion: "v1.36.2+podwright.sim",
        apiPort: 0,
        capacity: { maxPods: 110, podsPerCore: 0, reserved: [], reservedSystemCpus: "" },
      },
      registration: {
        ...{ enabled: true, taints: [], labels: {}, providerId: "", controllerAttaches: true },
        staleResources: [],
      },
      updatePeriodMs: 10_000,
      reportPeriodMs: 300_000,
    },
    runtime: { name: "sim", version: "0.1.0", handlers, supplementalGroupsPolicy: false },
    addresses: fixedAddresses(["10.0.0.1"]),
    leaseDurationSeconds: 40,
    maxImages: 50,
  };
}
