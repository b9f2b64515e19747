import { allContainers } from "../../api/all-containers.ts";
import type { ContainerPort } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import {
  type DNSConfigSchema,
  type LinuxSandboxSecurityContextSchema,
  type PodSandboxConfigSchema,
  type PortMappingSchema,
  Protocol,
  SecurityProfile_ProfileType as ProfileType,
} from "../../ports/gen/runtime/v1/api_pb.js";
import type { MessageInit } from "../../ports/message-init.ts";
import { type CgroupDriver, cgroupParent, podCgroup } from "../../resources/cgroup-names.ts";
import { type ResourceSettings, sandboxOverhead, sandboxResources } from "../../resources/container-resources.ts";
import { qosClass } from "../../resources/qos.ts";
import { Label } from "./labels.ts";
import { podLogDirectory } from "../layout/log-paths.ts";
import { kernelHostname, podHostname } from "./names.ts";
import { namespaceOptions, type UserNamespace } from "./namespaces.ts";
import { definedFields, supplementalGroups } from "./security-context.ts";
import { normalizeSysctl } from "./sysctls.ts";

export type SandboxConfig = MessageInit<typeof PodSandboxConfigSchema>;
export type DnsConfig = MessageInit<typeof DNSConfigSchema>;

/** The node's settings for sandbox configurations. */
export interface SandboxContext {
  /** `/var/log/pods`, the parent of pods' log directories. */
  readonly podLogsRoot: string;
  /** DNS domain of the cluster; empty when there is none. */
  readonly clusterDomain: string;
  /** The pod's resolver (dns.ts). */
  readonly dns: DnsConfig;
  readonly cgroupDriver: CgroupDriver;
  /** KubeletConfiguration's cgroupRoot, `/` by default; undefined: the runtime has its own. */
  readonly cgroupRoot: string | undefined;
  readonly resources: ResourceSettings;
  /** The pod's range of IDs; absent: the node's users. */
  readonly userNamespace?: UserNamespace;
  /** Groups that own files of the pod's volumes. */
  readonly volumeGroups?: readonly number[];
}

/**
 * The configuration of a pod's sandbox, equal to that of the Go kubelet 1.36.
 * @param attempt 0 for a pod's first sandbox, then one more than the newest one's
 * @throws ContainerConfigError for an invalid host name or unavailable namespaces
 */
export function generateSandboxConfig(pod: Pod, attempt: number, context: SandboxContext): SandboxConfig {
  const { name, namespace, uid } = pod.metadata;
  const sysctls = pod.spec.securityContext?.sysctls ?? [];
  return {
    metadata: { name, namespace, uid, attempt },
    // A hostNetwork pod has the node's name.
    ...(!pod.spec.hostNetwork && { hostname: kernelHostname(pod, podHostname(pod, context.clusterDomain)) }),
    logDirectory: podLogDirectory(context.podLogsRoot, pod.metadata),
    dnsConfig: context.dns,
    portMappings: pod.spec.containers.flatMap((container) => portMappings(container.ports ?? [])),
    labels: {
      ...pod.metadata.labels,
      [Label.podName]: name,
      [Label.podNamespace]: namespace,
      [Label.podUid]: uid,
    },
    annotations: { ...pod.metadata.annotations },
    linux: {
      cgroupParent: parentOf(pod, context),
      securityContext: sandboxSecurityContext(pod, context),
      sysctls: Object.fromEntries(sysctls.map(({ name: sysctl, value }) => [normalizeSysctl(sysctl), value])),
      overhead: sandboxOverhead(pod, context.resources),
      resources: sandboxResources(pod, context.resources),
    },
  };
}

function parentOf(pod: Pod, { cgroupRoot, cgroupDriver }: SandboxContext): string {
  if (cgroupRoot === undefined) return "";
  return cgroupParent(podCgroup(cgroupRoot, qosClass(pod), pod.metadata.uid), cgroupDriver);
}

/** The sandbox itself always uses the runtime's seccomp profile. */
function sandboxSecurityContext(
  pod: Pod,
  { userNamespace, volumeGroups }: Pick<SandboxContext, "userNamespace" | "volumeGroups">,
): MessageInit<typeof LinuxSandboxSecurityContextSchema> {
  const { runAsUser, runAsGroup, seLinuxOptions } = pod.spec.securityContext ?? {};
  return {
    namespaceOptions: namespaceOptions(pod, userNamespace),
    privileged: allContainers(pod.spec).some((container) => container.securityContext?.privileged === true),
    ...(runAsUser !== undefined && { runAsUser: { value: BigInt(runAsUser) } }),
    ...(runAsGroup !== undefined && { runAsGroup: { value: BigInt(runAsGroup) } }),
    ...(seLinuxOptions && { selinuxOptions: definedFields(seLinuxOptions) }),
    ...supplementalGroups(pod, volumeGroups),
    seccomp: { profileType: ProfileType.RuntimeDefault },
  };
}

/** Every declared port, with host port 0 if not published: CNI plugins and runtimes may use it. */
function portMappings(ports: readonly ContainerPort[]): MessageInit<typeof PortMappingSchema>[] {
  const names = new Set<string>();
  const mappings: MessageInit<typeof PortMappingSchema>[] = [];
  for (const port of ports) {
    const { name, containerPort, hostPort = 0, hostIP = "" } = port;
    const key = name || `${port.protocol ?? "TCP"}-${hostIP}:${containerPort}:${hostPort}`;
    // A port that is declared twice can be published only once.
    if (names.has(key)) continue;
    names.add(key);
    mappings.push({ protocol: protocolOf(port), containerPort, hostPort, hostIp: hostIP });
  }
  return mappings;
}

function protocolOf(port: ContainerPort): Protocol {
  return Protocol[port.protocol ?? "TCP"];
}
