import type { Container } from "../api/container.ts";
import { printable } from "../journal/text.ts";
import type { HttpProbeRequest } from "../ports/network-probes.ts";
import { probeUserAgent } from "../ports/network-probes.ts";
import { expandStaticCommand } from "../runtime/config/environment.ts";
import { httpGetRequest, resolvePort } from "../runtime/operations/http-get-action.ts";
import type { Probe } from "./probe-spec.ts";

/** A prepared probe. */
export type ProbeAction =
  | { readonly kind: "exec"; readonly command: readonly string[] }
  | { readonly kind: "http"; readonly request: HttpProbeRequest }
  | { readonly kind: "tcp"; readonly host: string; readonly port: number }
  | { readonly kind: "grpc"; readonly host: string; readonly port: number; readonly service: string };

/**
 * Builds a probe from the container's spec and its pod's address.
 * @param address of the pod, the node's for hostNetwork; empty while there is none
 * @throws Error when it is impossible: unknown port, no address, no handler
 */
export function probeAction(container: Container, probe: Probe, address: string): ProbeAction {
  const ports = container.ports ?? [];
  if (probe.exec !== undefined) {
    return { kind: "exec", command: expandStaticCommand(probe.exec.command ?? [], container.env ?? []) };
  }
  if (probe.httpGet !== undefined) {
    const host = probe.httpGet.host || addressOrThrow(address);
    return { kind: "http", request: httpGetRequest(probe.httpGet, ports, host, probeUserAgent) };
  }
  if (probe.tcpSocket !== undefined) {
    const host = probe.tcpSocket.host || addressOrThrow(address);
    return { kind: "tcp", host, port: resolvePort(probe.tcpSocket.port, ports) };
  }
  if (probe.grpc !== undefined) {
    const { port, service = "" } = probe.grpc;
    return { kind: "grpc", host: addressOrThrow(address), port: resolvePort(port, ports), service };
  }
  throw new Error("the probe has no exec, httpGet, tcpSocket or grpc");
}

/** Journal and Events have a name in each entry about a probe, and its author chooses the path. */
const maxNameCharacters = 100;

/**
 * The probe's name for people, safe to print and short: `GET :8080/healthz`, `TCP :5432`, `gRPC :9000 liveness`,
 * `exec cat`. Queries, users, headers and arguments are omitted: they may contain secrets.
 */
export function describeProbe(probe: Probe): string {
  const text = printable(nameOf(probe).slice(0, maxNameCharacters + 1));
  return text.length <= maxNameCharacters ? text : `${text.slice(0, maxNameCharacters)}…`;
}

function nameOf(probe: Probe): string {
  if (probe.exec !== undefined) return `exec ${probe.exec.command?.[0] ?? ""}`.trimEnd();
  if (probe.httpGet !== undefined) {
    const { host = "", port, path = "" } = probe.httpGet;
    const [shown = ""] = path.split(/[?#]/, 1);
    const plain = shown.replace(/^((?:[a-z][a-z0-9+.-]*:)?\/\/)[^/]*@/i, "$1");
    return `GET ${host}:${port}${plain.startsWith("/") ? plain : `/${plain}`}`;
  }
  if (probe.tcpSocket !== undefined) return `TCP ${probe.tcpSocket.host ?? ""}:${probe.tcpSocket.port}`;
  if (probe.grpc !== undefined) return `gRPC :${probe.grpc.port} ${probe.grpc.service ?? ""}`.trimEnd();
  return "nothing";
}

function addressOrThrow(address: string): string {
  if (address === "") throw new Error("the pod has no IP address");
  return address;
}
