import type { FlagKind } from "./flag-table.ts";

/** A flag of the kubelet that no field of KubeletConfiguration stands for. */
export interface NodeFlag {
  readonly kind: FlagKind;
  readonly support: "honoured" | "ignored";
  /** What it means to podwright; for one that is not honoured, why not: completes "podwright …". */
  readonly text: string;
  /** Values that ask for nothing: with them a flag that is not honoured passes without a word. */
  readonly harmless?: readonly string[];
}

const honoured = (kind: FlagKind, text: string): NodeFlag => ({ kind, support: "honoured", text });
const ignored = (kind: FlagKind, text: string, ...harmless: readonly string[]): NodeFlag => {
  return { kind, support: "ignored", text, harmless };
};

const noCadvisor = "collects statistics itself, without cAdvisor and its settings";
const keepsOne = "keeps one dead instance of each container";

export const nodeFlags: Readonly<Record<string, NodeFlag>> = {
  config: honoured("string", "KubeletConfiguration file (kubelet.config.k8s.io/v1beta1)"),
  "config-dir": honoured("string", "directory of drop-ins: *.conf files, merged in lexical order"),
  "root-dir": honoured("string", "where pods' directories are; /var/lib/kubelet"),
  "state-dir": honoured("string", "podwright's own state, for the client commands too; <root-dir>/podwright"),
  "hostname-override": honoured("string", "the node's name instead of the hostname"),
  "node-ip": honoured(
    "string",
    "the node's address, one of each family, or :: or 0.0.0.0 for the preferred family; without it one of the machine's is found as upstream does, and looked at again with each status",
  ),
  "node-labels": honoured("labels", "labels that the Node gets when it is registered"),
  "lock-file": honoured("string", "a file that is locked while the kubelet runs; it waits for the lock"),
  version: honoured(
    "version",
    "print the release that it stands in for, and end; raw: in parts; vX.Y.Z…: report this one",
  ),
  "exit-on-lock-contention": honoured("bool", "end when another process waits for the lock file"),
  "seccomp-default": honoured("bool", "as the field seccompDefault; either turns it on"),
  kubeconfig: honoured("string", "how to reach the API server, and as whom; without it the node stands alone"),
  "bootstrap-kubeconfig": honoured(
    "string",
    "as whom to ask for a client certificate while --kubeconfig has none that is valid; it is written there then",
  ),
  "cert-dir": honoured("string", "where certificates of this node are, those it makes and gets; /var/lib/kubelet/pki"),
  "token-auth-file": honoured("string", "podwright's own: clients' tokens, a line token,user,uid[,\"groups\"] each"),
  "node-page": honoured(
    "bool",
    "podwright's own: the API also serves the node page at /ui, to who may use nodes/proxy",
  ),
  record: honoured("string", "podwright's own: decisions are recorded to this file, for podwright replay"),
  "cloud-provider": honoured("string", "external: a cloud controller manager says what the node's addresses are"),
  "cloud-metadata": honoured(
    "string",
    "podwright's own: ec2, gce or azure: this node asks its cloud's metadata service for id, addresses, zone and type itself",
  ),
  "cloud-metadata-url": honoured("string", "podwright's own: where that service is; http://169.254.169.254"),
  "runtime-cgroups": honoured(
    "string",
    "the cgroup in which the runtime's use is counted, where it can't be found out",
  ),
  "image-credential-provider-config": honoured(
    "string",
    "CredentialProviderConfig of the programs that know credentials of registries: a file, or a directory of files",
  ),
  "image-credential-provider-bin-dir": honoured("string", "where these programs are"),
  "minimum-container-ttl-duration": ignored("duration", keepsOne, "0", "0s"),
  "maximum-dead-containers-per-container": ignored("int", keepsOne, "1"),
  "maximum-dead-containers": ignored("int", keepsOne, "-1"),
  "experimental-mounter-path": ignored("string", "mounts by itself", ""),
  "experimental-allocatable-ignore-eviction": honoured(
    "bool",
    "hard eviction thresholds take nothing from what pods may have",
  ),
  "housekeeping-interval": ignored("duration", noCadvisor),
  "max-housekeeping-interval": ignored("duration", noCadvisor),
  "global-housekeeping-interval": ignored("duration", noCadvisor),
  "application-metrics-count-limit": ignored("int", noCadvisor),
  "boot-id-file": ignored("string", noCadvisor),
  "container-hints": ignored("string", noCadvisor),
  containerd: ignored("string", noCadvisor),
  "containerd-namespace": ignored("string", noCadvisor),
  "enable-load-reader": ignored("bool", noCadvisor, "false"),
  "event-storage-age-limit": ignored("string", noCadvisor),
  "event-storage-event-limit": ignored("string", noCadvisor),
  "log-cadvisor-usage": ignored("bool", noCadvisor, "false"),
  "machine-id-file": ignored("string", noCadvisor),
  "storage-driver-user": ignored("string", noCadvisor),
  "storage-driver-password": ignored("string", noCadvisor),
  "storage-driver-host": ignored("string", noCadvisor),
  "storage-driver-db": ignored("string", noCadvisor),
  "storage-driver-table": ignored("string", noCadvisor),
  "storage-driver-secure": ignored("bool", noCadvisor, "false"),
  "storage-driver-buffer-duration": ignored("duration", noCadvisor),
};
