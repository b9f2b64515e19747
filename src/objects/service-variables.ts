import * as z from "zod";
import { decoder, type Resource } from "../api-client/resource.ts";
import type { Pod } from "../api/pod.ts";

/** corev1.Service, the part for container variables. */
export const Service = z.object({
  metadata: z.object({ name: z.string(), namespace: z.string().optional(), resourceVersion: z.string().optional() }),
  spec: z
    .object({
      clusterIP: z.string().optional(),
      ports: z
        .array(z.object({ name: z.string().optional(), protocol: z.string().optional(), port: z.int() }))
        .optional(),
    })
    .optional(),
});
export type Service = z.infer<typeof Service>;

export const services: Resource<Service> = {
  base: "/api/v1",
  plural: "services",
  kind: "Service",
  decode: decoder(Service, "Service"),
};

interface Variable {
  readonly name: string;
  readonly value: string;
}

/**
 * A pod's service variables: the services of its namespace unless enableServiceLinks is false, and always the API
 * server's own (`kubernetes` of namespace default; one of the pod's namespace wins). Pure.
 */
export function serviceVariables({ metadata, spec }: Pod, all: Iterable<Service>): Variable[] {
  const links = spec.enableServiceLinks ?? true;
  const chosen = new Map<string, Service>();
  for (const service of all) {
    const { name, namespace } = service.metadata;
    const own = namespace === metadata.namespace && links;
    const master = namespace === "default" && name === "kubernetes" && !chosen.has(name);
    if (hasAddress(service) && (own || master)) chosen.set(name, service);
  }
  return [...chosen.values()].toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1)).flatMap(variablesOf);
}

/** Headless services have none. */
function hasAddress({ spec }: Service): boolean {
  return spec?.clusterIP !== undefined && spec.clusterIP !== "" && spec.clusterIP !== "None";
}

function variablesOf({ metadata, spec }: Service): Variable[] {
  const { clusterIP = "", ports = [] } = spec ?? {};
  const prefix = variableName(metadata.name);
  const [first] = ports;
  const variables: Variable[] = [{ name: `${prefix}_SERVICE_HOST`, value: clusterIP }];
  if (first === undefined) return variables;
  variables.push({ name: `${prefix}_SERVICE_PORT`, value: String(first.port) });
  for (const { name, port } of ports) {
    if (name) variables.push({ name: `${prefix}_SERVICE_PORT_${variableName(name)}`, value: String(port) });
  }
  const host = clusterIP.includes(":") ? `[${clusterIP}]` : clusterIP;
  for (const [index, { protocol = "TCP", port }] of ports.entries()) {
    const scheme = protocol.toLowerCase();
    const url = `${scheme}://${host}:${port}`;
    const link = `${prefix}_PORT_${port}_${protocol.toUpperCase()}`;
    // In the format of Docker links.
    if (index === 0) variables.push({ name: `${prefix}_PORT`, value: url });
    variables.push({ name: link, value: url }, { name: `${link}_PROTO`, value: scheme });
    variables.push({ name: `${link}_PORT`, value: String(port) }, { name: `${link}_ADDR`, value: clusterIP });
  }
  return variables;
}

function variableName(name: string): string {
  return name.replaceAll("-", "_").toUpperCase();
}
