import type { Container } from "../../src/api/container.ts";
import type { Pod } from "../../src/api/pod.ts";

type Quantities = Readonly<Record<string, string | number>>;

/** A container that asks for these resources. */
export function containerWith(
  name: string,
  requests: Quantities | undefined,
  limits?: Quantities,
  changed: Partial<Container> = {},
): Container {
  const resources = { ...(requests && { requests: { ...requests } }), ...(limits && { limits: { ...limits } }) };
  return { name, resources, ...changed };
}

/** A pod with nothing but this spec. */
export function podWith(spec: Partial<Pod["spec"]>, metadata: Partial<Pod["metadata"]> = {}): Pod {
  return { metadata: { name: "p", namespace: "ns", uid: "u", ...metadata }, spec: { containers: [], ...spec } };
}
