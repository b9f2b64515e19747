import { podUid } from "../../src/base/ids.ts";
import type { Container } from "../../src/api/container.ts";
import type { Pod } from "../../src/api/pod.ts";

type Quantities = Readonly<Record<string, string | number>>;

/** A container with these resources. */
export function containerWith(
  name: string,
  requests: Quantities | undefined,
  limits?: Quantities,
  changed: Partial<Container> = {},
): Container {
  const resources = { ...(requests && { requests: { ...requests } }), ...(limits && { limits: { ...limits } }) };
  return { name, resources, ...changed };
}

/** A test pod's metadata. */
export type MetadataParts = Omit<Partial<Pod["metadata"]>, "uid"> & { readonly uid?: string };

/** A pod with only this spec. */
export function podWith(spec: Partial<Pod["spec"]>, { uid = "u", ...metadata }: MetadataParts = {}): Pod {
  return {
    metadata: { name: "p", namespace: "ns", uid: podUid(uid), ...metadata },
    spec: { containers: [], ...spec },
  };
}
