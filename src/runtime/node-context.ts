import type { CgroupDriver } from "../resources/cgroup-names.ts";
import type { ResourceSettings } from "../resources/container-resources.ts";

/** What of the node and its configuration goes into pods. Fixed while podwright runs. */
export interface NodeContext {
  readonly nodeName: string;
  /** `/var/lib/kubelet`: pods' own directories are below `pods/`. */
  readonly rootDirectory: string;
  /** `/var/log/pods`. */
  readonly podLogsRoot: string;
  /** `/var/log/containers`: links to the logs, for log collectors. */
  readonly containerLogsRoot: string;
  /** The node's addresses, the primary one first. What is in the list may change while podwright runs, where it is a cluster's. */
  readonly hostIPs: readonly string[];
  /** DNS domain of the cluster; empty when there is none. */
  readonly clusterDomain: string;
  /** Name servers for dnsPolicy ClusterFirst. */
  readonly clusterDNS: readonly string[];
  /** The node's resolver file; empty: none (KubeletConfiguration's resolvConf). */
  readonly resolvConf: string;
  readonly cgroupDriver: CgroupDriver;
  /** Parent of kubepods, `/` by default. */
  readonly cgroupRoot: string;
  readonly seccompDefault: boolean;
  /** SELinux is on: files that podwright makes for containers are labelled for them. */
  readonly seLinux: boolean;
  /** Paths of this machine that containers don't see, beside the usual ones. */
  readonly maskedPaths: readonly string[];
  readonly resources: ResourceSettings;
}
