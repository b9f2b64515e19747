import type { Container, ContainerPort } from "../api/container.ts";
import type { FieldError } from "./field-errors.ts";
import { formatPath, quote, type FieldPath } from "../yaml/manifest-error.ts";

interface PlacedPort {
  readonly port: ContainerPort;
  readonly path: FieldPath;
}

/** Ports of a pod that are duplicate, or ambiguous. */
export function portWarnings(
  containers: readonly { readonly container: Container; readonly path: FieldPath }[],
): FieldError[] {
  const ports = containers.flatMap(({ container, path }) =>
    (container.ports ?? []).map((port, index): PlacedPort => ({ port, path: [...path, "ports", index] })),
  );
  return [...definitions(ports), ...names(ports)];
}

function* definitions(ports: readonly PlacedPort[]): Iterable<FieldError> {
  const earlier = new Map<string, PlacedPort[]>();
  for (const placed of ports) {
    const { port, path } = placed;
    const { containerPort, protocol = "TCP", hostPort = 0, hostIP = "", name = "" } = port;
    if (hostIP !== "" && hostPort === 0) {
      const shown = `{Name:${name} HostPort:0 ContainerPort:${containerPort} Protocol:${protocol} HostIP:${hostIP}}`;
      yield { path, detail: `hostIP set without hostPort: ${shown}` };
    }
    const key = `${containerPort}/${protocol}`;
    const same = earlier.get(key) ?? [];
    for (const other of same) {
      const problem = clash(port, other.port);
      if (problem !== undefined) yield { path, detail: `${problem} port definition with ${formatPath(other.path)}` };
    }
    earlier.set(key, [...same, placed]);
  }
}

function clash(a: ContainerPort, b: ContainerPort): string | undefined {
  const [hostA, hostB] = [a.hostPort ?? 0, b.hostPort ?? 0];
  const [ipA, ipB] = [a.hostIP ?? "", b.hostIP ?? ""];
  if (ipA === ipB && hostA === hostB) return "duplicate";
  if (hostA === 0 || hostB === 0) return "overlapping";
  return hostA === hostB && (ipA === "") !== (ipB === "") ? "dangerously ambiguous" : undefined;
}

function* names(ports: readonly PlacedPort[]): Iterable<FieldError> {
  const earlier = new Map<string, string>();
  for (const { port, path } of ports) {
    const { name = "" } = port;
    if (name === "") continue;
    const other = earlier.get(name);
    if (other === undefined) earlier.set(name, formatPath(path));
    else {
      const use = `services and probes that select ports by name will use ${other}`;
      yield { path, detail: `duplicate port name ${quote(name)} with ${other}, ${use}` };
    }
  }
}
