import { arch } from "node:os";
import { resolve } from "node:path/posix";
import { ApiClient } from "../api-client/client.ts";
import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import { version } from "../base/version.ts";
import type { KubeletConfiguration } from "../config/defaults.ts";
import type { NodeFlagValues } from "../config/flags.ts";
import { milliseconds } from "../config/settings.ts";
import type { ClusterSetup } from "../engine/cluster.ts";
import type { MachineInfo } from "../engine/machine.ts";
import { inClusterAccess } from "../kube/in-cluster.ts";
import { decodeKubeconfig, type KubeAccess } from "../kube/kubeconfig.ts";
import { openKubeTransport } from "../kube/transport.ts";
import { readNodeFacts } from "../node/node-facts.ts";
import type { NodeRegistration } from "../node/node-status.ts";
import type { Ports } from "../ports/ports.ts";
import type { RuntimeInfo } from "../runtime-service/features.ts";

/** The release of Kubernetes whose kubelet podwright stands in for; what podwright is comes behind it. */
const kubernetesVersion = "v1.36.2";
const maxKubeconfigBytes = 1024 * 1024;

/** Go's names of processors, which the labels of nodes use. */
const architectures: Readonly<Record<string, string>> = { x64: "amd64", ia32: "386" };

export interface ClusterParts {
  readonly ports: Ports;
  readonly configuration: KubeletConfiguration;
  readonly flags: NodeFlagValues;
  readonly access: KubeAccess;
  readonly nodeName: string;
  readonly hostIPs: readonly string[];
  readonly machine: MachineInfo;
  readonly runtime: RuntimeInfo;
}

/**
 * The cluster that `--kubeconfig` names; undefined without the flag, and the node stands alone.
 * @throws PodwrightError (bad input) when the file can't be used
 */
export async function clusterAccess(
  ports: Ports,
  { kubeconfig = "" }: NodeFlagValues,
): Promise<KubeAccess | undefined> {
  if (kubeconfig === "") return undefined;
  const path = resolve(process.cwd(), kubeconfig);
  let bytes: Uint8Array;
  try {
    bytes = await ports.files.read(path, maxKubeconfigBytes);
  } catch (error) {
    throw new PodwrightError(ExitCode.badInput, `failed to read the kubeconfig: ${errorMessage(error)}`, {
      cause: error,
      remedy: "check --kubeconfig",
    });
  }
  return decodeKubeconfig(new TextDecoder().decode(bytes), path) ?? inClusterAccess(process.env);
}

/** A node's place in the cluster; connections are closed when the result is disposed of. */
export async function openCluster(parts: ClusterParts): Promise<ClusterSetup & Disposable> {
  const { ports, configuration, nodeName, hostIPs, machine, runtime } = parts;
  const architecture = architectures[arch()] ?? arch();
  const userAgent = `podwright/${version} (linux/${architecture})`;
  const transport = openKubeTransport(parts.access, { ...ports, userAgent });
  const updatePeriodMs = milliseconds(configuration.nodeStatusUpdateFrequency);
  const leaseDurationSeconds = configuration.nodeLeaseDurationSeconds;
  const client = new ApiClient(
    { transport, clock: ports.clock },
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
        addresses: hostIPs,
        facts: await readNodeFacts(ports.files, machine),
        architecture,
        kubeletVersion: `${kubernetesVersion}+podwright.${version}`,
        apiPort: configuration.enableServer ? configuration.port : 0,
        runtime,
        capacity: {
          maxPods: configuration.maxPods,
          podsPerCore: configuration.podsPerCore ?? 0,
          reserved: [configuration.systemReserved ?? {}, configuration.kubeReserved ?? {}],
          reservedSystemCpus: configuration.reservedSystemCPUs ?? "",
          evictionMemory: configuration.evictionHard?.["memory.available"] ?? "",
        },
      },
      registration: registrationOf(parts),
      updatePeriodMs,
      reportPeriodMs: milliseconds(configuration.nodeStatusReportFrequency),
    },
    leaseDurationSeconds,
    maxImages: configuration.nodeStatusMaxImages,
    [Symbol.dispose]: () => transport[Symbol.dispose](),
  };
}

function registrationOf({ configuration, flags }: ClusterParts): NodeRegistration {
  return {
    enabled: configuration.registerNode ?? true,
    taints: configuration.registerWithTaints ?? [],
    labels: flags.nodeLabels ?? {},
    providerId: configuration.providerID ?? "",
    controllerAttaches: configuration.enableControllerAttachDetach,
  };
}
