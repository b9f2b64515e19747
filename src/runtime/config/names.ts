import type { Pod } from "../../api/pod.ts";
import { ContainerConfigError } from "./container-config-error.ts";

/** RFC 1123: one label, and names of several. */
const labelPattern = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
const subdomainPattern = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
const maxHostname = 63;
const maxSubdomain = 253;
/** The kernel's nodename without the closing zero. */
const maxKernelHostname = 64;

export interface PodHostname {
  /** At most 63 characters, no dot unless hostnameOverride has one. */
  readonly hostname: string;
  /** `<subdomain>.<ns>.svc.<cluster domain>`; empty without a subdomain. */
  readonly domain: string;
}

/**
 * The pod's host names: `hostnameOverride`, else `hostname`, else its own name.
 * @throws ContainerConfigError for invalid names
 */
export function podHostname(pod: Pod, clusterDomain: string): PodHostname {
  const { hostnameOverride, hostname, subdomain } = pod.spec;
  if (hostnameOverride !== undefined) {
    if (!isSubdomain(hostnameOverride)) {
      throw new ContainerConfigError(
        `pod HostnameOverride ${JSON.stringify(hostnameOverride)} is not a valid DNS subdomain`,
      );
    }
    return { hostname: cutHostname(hostnameOverride), domain: "" };
  }
  checkLabel("Hostname", hostname);
  checkLabel("Subdomain", subdomain);
  return {
    hostname: cutHostname(hostname || pod.metadata.name),
    domain: subdomain ? `${subdomain}.${pod.metadata.namespace}.svc.${clusterDomain}` : "",
  };
}

/**
 * The kernel's host name in the pod: the full name with setHostnameAsFQDN.
 * @throws ContainerConfigError when that exceeds the kernel's limit
 */
export function kernelHostname(pod: Pod, { hostname, domain }: PodHostname): string {
  if (pod.spec.setHostnameAsFQDN !== true || domain === "") return hostname;
  const fqdn = `${hostname}.${domain}`;
  if (fqdn.length > maxKernelHostname) {
    throw new ContainerConfigError(
      `failed to construct FQDN from pod hostname and cluster domain, FQDN ${fqdn} is too long ` +
        `(${maxKernelHostname} characters is the max, ${fqdn.length} characters requested)`,
    );
  }
  return fqdn;
}

function checkLabel(field: string, value: string | undefined): void {
  if (value && !labelPattern.test(value)) {
    throw new ContainerConfigError(`pod ${field} ${JSON.stringify(value)} is not a valid DNS label`);
  }
}

function isSubdomain(name: string): boolean {
  return name.length <= maxSubdomain && subdomainPattern.test(name);
}

function cutHostname(name: string): string {
  return name.length <= maxHostname ? name : name.slice(0, maxHostname).replace(/[-.]+$/, "");
}
