import type { NodeObject } from "../api/node.ts";

/** Extended resources: names with a domain that is not Kubernetes' own. */
export function isExtended(name: string): boolean {
  return name.includes("/") && !name.includes("kubernetes.io/");
}

const machineResources: ReadonlySet<string> = new Set(["cpu", "memory", "pods", "ephemeral-storage"]);

/** Whether others set the resource, extended or not: one of the machine itself that it no longer has is removed. */
export function isForeign(name: string): boolean {
  return !machineResources.has(name) && !name.startsWith("hugepages-");
}

/** Extended resources of a Node that its machine does not have: all of them, or those. */
export type StaleResources = "all" | readonly string[];

/** Extended resources to set to 0 in a Node's capacity, until someone sets them; undefined: nothing to do. Pure. */
export function withoutStale(
  { status }: NodeObject,
  stale: StaleResources,
): Readonly<Record<string, string>> | undefined {
  const zeros = Object.entries(status?.capacity ?? {})
    .filter(([name, value]) => isExtended(name) && value !== "0" && (stale === "all" || stale.includes(name)))
    .map(([name]) => [name, "0"] as const);
  return zeros.length > 0 ? Object.fromEntries(zeros) : undefined;
}

/** Resources that a device plugin, a controller or a person has added to the node. Pure. */
export function extendedResources({ status }: NodeObject): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(status?.allocatable ?? {}).filter(([name]) => name.includes("/")));
}
