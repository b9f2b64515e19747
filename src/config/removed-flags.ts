/** Removed flags: `[version of the removal, remedy, names]`. The version is empty if unknown. */
const table: readonly (readonly [since: string, instead: string, names: string])[] = [
  ["1.35", "delete it; the sandbox image is set in the runtime's own configuration", "pod-infra-container-image"],
  ["1.34", "delete it; the cloud controller manager reads that file (--cloud-provider=external)", "cloud-config"],
  [
    "1.33",
    "delete it; --register-with-taints=node.kubernetes.io/unschedulable=:NoSchedule registers an unschedulable node",
    "register-schedulable",
  ],
  ["1.31", "delete it; terminated pods keep no volumes", "keep-terminated-pod-volumes"],
  ["1.31", "delete it; kube-proxy alone marks packets", "iptables-masquerade-bit iptables-drop-bit"],
  [
    "1.30",
    "use --image-credential-provider-config and --image-credential-provider-bin-dir",
    "azure-container-registry-config",
  ],
  ["1.27", "delete it; use --container-runtime-endpoint", "container-runtime"],
  ["1.27", "delete it", "master-service-namespace"],
  [
    "1.26",
    "delete it; logs go to standard error",
    `add-dir-header alsologtostderr log-backtrace-at log-dir log-file log-file-max-size logtostderr one-output
    skip-headers skip-log-headers stderrthreshold`,
  ],
  ["1.25", "use --kernel-memcg-notification", "experimental-kernel-memcg-notification"],
  [
    "1.24",
    "delete it; CNI is set up in the runtime's own configuration",
    "network-plugin network-plugin-mtu cni-bin-dir cni-conf-dir cni-cache-dir",
  ],
  [
    "1.24",
    "delete it; use --container-runtime-endpoint (for Docker: that of cri-dockerd)",
    "docker-endpoint experimental-dockershim experimental-dockershim-root-directory",
  ],
  ["1.24", "delete it; pulls are limited by the runtime's own configuration", "image-pull-progress-deadline"],
  ["1.24", "delete it; the network plugin, or ip-masq-agent, masquerades", "non-masquerade-cidr"],
  ["1.24", "use --config and --config-dir", "dynamic-config-dir"],
  ["1.23", "delete it", "experimental-check-node-capabilities-before-mount"],
  ["1.22", "delete it", "chaos-chance really-crash-for-testing"],
  ["1.20", "delete it", "redirect-container-streaming"],
  [
    "1.15",
    "delete it; use admission control at the API server",
    "allow-privileged host-ipc-sources host-network-sources host-pid-sources",
  ],
  ["1.12", "delete it; the kubelet's port serves /metrics/cadvisor", "cadvisor-port"],
  ["", "delete it; use /stats/summary and /metrics/cadvisor", "enable-cadvisor-json-endpoints"],
  ["", "delete it; profiles are named relative to seccomp in --root-dir", "seccomp-profile-root"],
  ["", "delete it; --kubeconfig is enough", "require-kubeconfig"],
  ["", "use --kubeconfig", "api-servers auth-path"],
  ["", "use --config", "init-config-dir"],
  ["", "use --bootstrap-kubeconfig", "experimental-bootstrap-kubeconfig"],
  ["", "use --kubelet-cgroups", "resource-container"],
  ["", "use --system-cgroups", "system-container"],
  ["", "use --eviction-hard", "low-diskspace-threshold-mb"],
  ["", "use --eviction-pressure-transition-period", "outofdisk-transition-frequency"],
  ["", "use --image-credential-provider-config", "google-json-key"],
  [
    "",
    "delete it; the kubelet no longer supports Docker",
    `docker docker-disable-shared-pid docker-env-metadata-whitelist docker-exec-handler docker-only docker-root
    docker-tls docker-tls-ca docker-tls-cert docker-tls-key`,
  ],
  ["", "delete it; rkt is no longer supported", "rkt-api-endpoint rkt-path rkt-stage1-image"],
  [
    "",
    "delete it",
    `babysit-daemons bootstrap-checkpoint-path configure-cbr0 containerized enable-custom-metrics
    experimental-logging-sanitization experimental-nvidia-gpus reconcile-cidr`,
  ],
];

const removed: ReadonlyMap<string, string> = new Map(
  table.flatMap(([since, instead, names]) => {
    const problem = `removed ${since === "" ? "from the kubelet" : `in Kubernetes ${since}`}: ${instead}`;
    return names.split(/\s+/u).map((name) => [name, problem] as const);
  }),
);

/** For a removed flag: `removed in Kubernetes 1.27: delete it; …`. */
export function removedFlag(name: string): string | undefined {
  return removed.get(name);
}

/** The name without its experimental prefix. */
export function withoutExperimental(name: string): string {
  return name.replace(/^experimental-/u, "");
}
