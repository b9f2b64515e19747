import type { FlagKind } from "./flag-table.ts";

/** A flag of the kubelet without a field of KubeletConfiguration. */
export interface NodeFlag {
  readonly kind: FlagKind;
  readonly support: "honoured" | "ignored";
  /** For an honoured flag its help; otherwise the reason, which completes "podwright …". */
  readonly text: string;
  /** Values without a warning, because they request nothing. */
  readonly harmless?: readonly string[];
}

const honoured = (kind: FlagKind, text: string): NodeFlag => ({ kind, support: "honoured", text });
const ignored = (kind: FlagKind, text: string, ...harmless: readonly string[]): NodeFlag => {
  return { kind, support: "ignored", text, harmless };
};

const noCadvisor = "collects statistics itself, without cAdvisor";

export const nodeFlags: Readonly<Record<string, NodeFlag>> = {
  config: honoured("string", "KubeletConfiguration file (kubelet.config.k8s.io/v1beta1)"),
  "config-dir": honoured("string", "directory of drop-in *.conf files, merged in lexical order"),
  "root-dir": honoured("string", "parent of the pods' directories (default /var/lib/kubelet)"),
  "state-dir": honoured(
    "string",
    "directory of podwright's own state, also for client commands (default <root-dir>/podwright)",
  ),
  "hostname-override": honoured("string", "the node's name instead of the hostname"),
  "node-ip": honoured(
    "string",
    "the node's address, one of each family, or :: or 0.0.0.0 for the preferred family (default: detected with each status, as upstream)",
  ),
  "node-labels": honoured("labels", "labels of the Node when it is registered"),
  "lock-file": honoured("string", "a file that the kubelet locks while it runs; it waits for the lock"),
  version: honoured(
    "version",
    "print the Kubernetes version and exit; with raw: in its parts; with vX.Y.Z…: report this version instead",
  ),
  "exit-on-lock-contention": honoured("bool", "exit when another process waits for the lock file"),
  "seccomp-default": honoured("bool", "like the field seccompDefault; either enables it"),
  kubeconfig: honoured("string", "kubeconfig for the API server; without it the node is standalone"),
  "bootstrap-kubeconfig": honoured(
    "string",
    "kubeconfig to request a client certificate with while --kubeconfig has no valid one; --kubeconfig is then written",
  ),
  "cert-dir": honoured("string", "directory of this node's certificates (default /var/lib/kubelet/pki)"),
  "token-auth-file": honoured(
    "string",
    'podwright\'s own: file of client tokens, one line token,user,uid[,"groups"] each',
  ),
  "node-page": honoured("bool", "podwright's own: the API also serves the node page at /ui, to users with nodes/proxy"),
  "confirm-evictions": honoured(
    "bool",
    "podwright's own: pods that only changed settings would evict are kept until podwright evict --confirm",
  ),
  "eviction-memory": honoured(
    "string",
    "podwright's own: the source of memory.available: workingSet as upstream (default), or MemAvailable of /proc/meminfo",
  ),
  record: honoured("string", "podwright's own: file to record decisions to, for podwright replay"),
  "cloud-provider": honoured("string", "external: a cloud controller manager sets the node's addresses"),
  "cloud-metadata": honoured(
    "string",
    "podwright's own: ec2, gce or azure: the node gets its ID, addresses, zone and type from its cloud's metadata service",
  ),
  "cloud-metadata-url": honoured("string", "podwright's own: URL of that service (default http://169.254.169.254)"),
  "runtime-cgroups": honoured(
    "string",
    "the cgroup whose usage is reported as the runtime's, if it cannot be detected",
  ),
  "image-credential-provider-config": honoured("string", "CredentialProviderConfig: a file, or a directory of files"),
  "image-credential-provider-bin-dir": honoured("string", "directory of credential provider executables"),
  "minimum-container-ttl-duration": honoured(
    "duration",
    "minimum age of a dead container before it is removed (default 0)",
  ),
  "maximum-dead-containers-per-container": honoured(
    "int",
    "dead instances to keep of each container (default 1; negative: all); the newest is always kept",
  ),
  "maximum-dead-containers": honoured("int", "dead containers to keep on the node (default -1; negative: any number)"),
  "experimental-mounter-path": ignored("string", "mounts by itself", ""),
  "experimental-allocatable-ignore-eviction": honoured(
    "bool",
    "hard eviction thresholds are not subtracted from allocatable",
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
