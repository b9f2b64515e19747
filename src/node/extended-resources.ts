import type { NodeObject } from "../api/node.ts";

/** Resources of devices: names with a domain that is not Kubernetes' own. */
export function isExtended(name: string): boolean {
  return name.includes("/") && !name.includes("kubernetes.io/");
}

/** Extended resources that somebody, a device plugin or a person, has given the node to share out. Pure. */
export function extendedResources({ status }: NodeObject): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(status?.allocatable ?? {}).filter(([name]) => isExtended(name)));
}
