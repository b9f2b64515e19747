import type { CgroupDriver } from "../resources/cgroup-names.ts";
import type { ResourceSettings } from "../resources/container-resources.ts";

/** The node's settings for pods. Constant while podwright runs. */
export interface NodeContext {
  readonly nodeName: string;
  /** `/var/lib/kubelet`: pods' directories are below `pods/`. */
  readonly rootDirectory: string;
  /** `/var/log/pods`. */
  readonly podLogsRoot: string;
  /** `/var/log/containers`: links to the logs, for log collectors. */
  readonly containerLogsRoot: string;
  /** The node's addresses, the primary one first. In a cluster the list's content may change while podwright runs. */
  readonly hostIPs: readonly string[];
  /** DNS domain of the cluster; empty when there is none. */
  readonly clusterDomain: string;
  /** Name servers for dnsPolicy ClusterFirst. */
  readonly clusterDNS: readonly string[];
  /** The node's resolver file; empty: none (KubeletConfiguration's resolvConf). */
  readonly resolvConf: string;
  readonly cgroupDriver: CgroupDriver;
  /** Parent of kubepods, `/` by default; undefined: pods have no cgroups of their own. */
  readonly cgroupRoot: string | undefined;
  readonly seccompDefault: boolean;
  /** SELinux is enabled: files created for containers are labelled. */
  readonly seLinux: boolean;
  /** Paths of this machine to mask beside the usual ones. */
  readonly maskedPaths: readonly string[];
  readonly resources: ResourceSettings;
}
