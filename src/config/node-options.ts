import { ExitCode, PodwrightError } from "../base/errors.ts";
import { canonicalIp, isV6 } from "../base/ip.ts";
import type { NodeIps } from "../node/host-address.ts";
import { isIpAddress, labelValueProblem, qualifiedNameProblem } from "../base/formats.ts";

/**
 * The node's name: the override or the hostname, trimmed and in lower case (upstream's GetHostname). @throws
 * PodwrightError if it is empty
 */
export function nodeNameOf(override: string | undefined, hostname: string): string {
  const name = (override || hostname).trim().toLowerCase();
  if (name !== "") return name;
  throw new PodwrightError(ExitCode.badInput, "empty hostname is invalid", { remedy: "set --hostname-override" });
}

/**
 * Parses `--node-ip`.
 * @param nodeIp an address, two of different families separated by a comma, or `::` or `0.0.0.0` for a family
 * @throws PodwrightError (bad input) for anything else
 */
export function nodeIpsOf(nodeIp: string | undefined): NodeIps {
  const parts = (nodeIp ?? "").split(",").map((address) => address.trim());
  const words = parts.filter((address) => address !== "");
  for (const address of words) {
    if (!isIpAddress(address)) throw badNodeIp(nodeIp, `${JSON.stringify(address)} is not an IP address`);
  }
  // As the API server and others write them, so that they are found to be equal.
  const given = words.map(canonicalIp);
  const [first, second, ...more] = given;
  if (second === undefined && (first === "::" || first === "0.0.0.0")) return { given: [], prefersV6: first === "::" };
  if (more.length > 0 || (first !== undefined && second !== undefined && isV6(first) === isV6(second))) {
    throw badNodeIp(nodeIp, "must contain either a single IP or a dual-stack pair of IPs");
  }
  if (given.some((address) => address === "::" || address === "0.0.0.0")) {
    throw badNodeIp(nodeIp, "an unspecified address must be the only one");
  }
  return { given, prefersV6: false };
}

function badNodeIp(nodeIp: string | undefined, problem: string): PodwrightError {
  return new PodwrightError(ExitCode.badInput, `bad --node-ip ${JSON.stringify(nodeIp)}: ${problem}`);
}

/** Labels of Kubernetes' namespaces that a kubelet may set on its node (well_known_labels.go). */
const kubeletLabels = new Set([
  "kubernetes.io/hostname",
  "kubernetes.io/os",
  "kubernetes.io/arch",
  "beta.kubernetes.io/os",
  "beta.kubernetes.io/arch",
  "beta.kubernetes.io/instance-type",
  "node.kubernetes.io/instance-type",
  "topology.kubernetes.io/zone",
  "topology.kubernetes.io/region",
  "failure-domain.beta.kubernetes.io/zone",
  "failure-domain.beta.kubernetes.io/region",
]);
const kubeletNamespaces = ["kubelet.kubernetes.io", "node.kubernetes.io"];

/** Problems of `--node-labels`, in upstream's words. */
export function nodeLabelProblems(labels: Readonly<Record<string, string>>): string[] {
  const unknown = Object.keys(labels).filter((key) => isKubernetesLabel(key) && !isKubeletLabel(key));
  if (unknown.length > 0) {
    return [
      `unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [${unknown.toSorted().join(" ")}]\n` +
        `--node-labels in the 'kubernetes.io' namespace must begin with an allowed prefix (${kubeletNamespaces.join(", ")}) ` +
        `or be in the specifically allowed set (${[...kubeletLabels].toSorted().join(", ")})`,
    ];
  }
  return Object.entries(labels).flatMap(([key, value]) => {
    const problems = [qualifiedNameProblem(key), labelValueProblem(value)].filter((problem) => problem !== undefined);
    return problems.map((problem) => `invalid node labels: '${key}=${value}' - ${problem}`);
  });
}

function namespaceOf(key: string): string {
  const slash = key.indexOf("/");
  return slash < 0 ? "" : key.slice(0, slash);
}

function isIn(namespace: string, parent: string): boolean {
  return namespace === parent || namespace.endsWith(`.${parent}`);
}

function isKubernetesLabel(key: string): boolean {
  return ["kubernetes.io", "k8s.io"].some((parent) => isIn(namespaceOf(key), parent));
}

function isKubeletLabel(key: string): boolean {
  return kubeletLabels.has(key) || kubeletNamespaces.some((parent) => isIn(namespaceOf(key), parent));
}
