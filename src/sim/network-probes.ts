import { type NetworkProbes, ProbeTargetError } from "../ports/network-probes.ts";

const refuse = (): Promise<never> => Promise.reject(new ProbeTargetError("connection refused"));

/** A network on which nothing listens: simulated containers have programs, but no servers. */
export const simNetworkProbes: NetworkProbes = { httpGet: refuse, tcpConnect: refuse, grpcHealth: refuse };
