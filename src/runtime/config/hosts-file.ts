import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import { podHostname } from "./names.ts";

export const hostsPath = "/etc/hosts";

const header = "# Kubernetes-managed hosts file.\n";
const hostNetworkHeader = "# Kubernetes-managed hosts file (host network).\n";
const localNames = [
  "127.0.0.1\tlocalhost",
  "::1\tlocalhost ip6-localhost ip6-loopback",
  "fe00::0\tip6-localnet",
  "fe00::0\tip6-mcastprefix",
  "fe00::1\tip6-allnodes",
  "fe00::2\tip6-allrouters",
];

/**
 * Whether the container gets the pod's hosts file: the pod has an address, and the container no mount of its own there.
 */
export function mountsHostsFile(pod: Pod, container: Container, podIPs: readonly string[]): boolean {
  const mountedByPod = (container.volumeMounts ?? []).some((mount) => mount.mountPath === hostsPath);
  return !mountedByPod && (podIPs.length > 0 || pod.spec.hostNetwork === true);
}

/**
 * The content of a pod's /etc/hosts: its own names, or the node's file with hostNetwork; then its hostAliases.
 * @param nodeHosts the node's /etc/hosts; used for hostNetwork pods only
 * @throws ContainerConfigError for an invalid host name
 */
export function hostsFile(pod: Pod, podIPs: readonly string[], clusterDomain: string, nodeHosts: string): string {
  const aliases = aliasLines(pod);
  if (pod.spec.hostNetwork === true) return hostNetworkHeader + nodeHosts + aliases;
  const { hostname, domain } = podHostname(pod, clusterDomain);
  const names = domain === "" ? hostname : `${hostname}.${domain}\t${hostname}`;
  const lines = [...localNames, ...podIPs.map((ip) => `${ip}\t${names}`)];
  return `${header}${lines.join("\n")}\n${aliases}`;
}

function aliasLines(pod: Pod): string {
  const aliases = pod.spec.hostAliases ?? [];
  if (aliases.length === 0) return "";
  const lines = aliases.map(({ ip, hostnames = [] }) => `${ip}\t${hostnames.join("\t")}\n`);
  return `\n# Entries added by HostAliases.\n${lines.join("")}`;
}
