import type { FlagKind } from "./flag-table.ts";

/** A flag of the kubelet that no field of KubeletConfiguration stands for. */
export interface NodeFlag {
  readonly kind: FlagKind;
  readonly support: "honoured" | "ignored" | "refused";
  /** What it means to podwright; for one that is not honoured, why not: completes "podwright …". */
  readonly text: string;
  /** Values that ask for nothing: with them a flag that is not honoured passes without a word. */
  readonly harmless?: readonly string[];
}

const honoured = (kind: FlagKind, text: string): NodeFlag => ({ kind, support: "honoured", text });
const ignored = (kind: FlagKind, text: string, ...harmless: readonly string[]): NodeFlag => {
  return { kind, support: "ignored", text, harmless };
};
const refused = (kind: FlagKind, text: string, ...harmless: readonly string[]): NodeFlag => {
  return { kind, support: "refused", text, harmless };
};

const noCadvisor = "does not collect statistics yet";
const keepsOne = "keeps one dead instance of each container";
const noCredentials = "pulls images without credentials so far";

export const nodeFlags: Readonly<Record<string, NodeFlag>> = {
  config: honoured("string", "KubeletConfiguration file (kubelet.config.k8s.io/v1beta1)"),
  "config-dir": honoured("string", "directory of drop-ins: *.conf files, merged in lexical order"),
  "root-dir": honoured("string", "where pods' directories are; /var/lib/kubelet"),
  "state-dir": honoured("string", "podwright's own state, for the client commands too; <root-dir>/podwright"),
  "hostname-override": honoured("string", "the node's name instead of the hostname"),
  "node-ip": honoured("string", "the node's address, one of each family, or :: or 0.0.0.0 for the preferred family"),
  "node-labels": honoured("map", "labels that the Node gets when it is registered"),
  "lock-file": honoured("string", "a file that is locked while the kubelet runs; it waits for the lock"),
  "exit-on-lock-contention": honoured("bool", "end when another process waits for the lock file"),
  "seccomp-default": honoured("bool", "as the field seccompDefault; either turns it on"),
  kubeconfig: honoured("string", "how to reach the API server, and as whom; without it the node stands alone"),
  "bootstrap-kubeconfig": refused("string", "asks for no client certificate yet; give --kubeconfig", ""),
  "cert-dir": honoured("string", "where the serving certificate is that podwright makes; /var/lib/kubelet/pki"),
  "token-auth-file": honoured("string", "podwright's own: clients' tokens, a line token,user,uid[,\"groups\"] each"),
  record: honoured("string", "podwright's own: decisions are recorded to this file, for podwright replay"),
  "cloud-provider": ignored("string", "knows no cloud providers yet", ""),
  "runtime-cgroups": ignored("string", noCadvisor, ""),
  "image-credential-provider-config": ignored("string", noCredentials, ""),
  "image-credential-provider-bin-dir": ignored("string", noCredentials, ""),
  "minimum-container-ttl-duration": ignored("duration", keepsOne, "0", "0s"),
  "maximum-dead-containers-per-container": ignored("int", keepsOne, "1"),
  "maximum-dead-containers": ignored("int", keepsOne, "-1"),
  "experimental-mounter-path": ignored("string", "mounts by itself", ""),
  "experimental-allocatable-ignore-eviction": ignored("bool", "does not evict pods yet", "false"),
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
