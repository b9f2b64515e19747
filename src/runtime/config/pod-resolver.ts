import type { Pod } from "../../api/pod.ts";
import type { Recorder } from "../../journal/entry.ts";
import type { Files } from "../../ports/files.ts";
import type { NodeContext } from "../node-context.ts";
import { maxResolvConfBytes, podDns } from "./dns.ts";
import { Annotation } from "./labels.ts";
import { podRef } from "../pod-ref.ts";
import type { DnsConfig } from "./sandbox-config.ts";

/** The dependencies of a pod's resolver. */
export interface ResolverDependencies {
  readonly files: Pick<Files, "read">;
  readonly journal: Recorder;
  readonly node: Pick<NodeContext, "resolvConf" | "clusterDNS" | "clusterDomain" | "hostIPs">;
}

/** The pod's resolver from its spec and the node's resolver file; omissions are recorded. */
export async function resolverOf(deps: ResolverDependencies, pod: Pod): Promise<DnsConfig> {
  const { node, files, journal } = deps;
  const resolvConf =
    node.resolvConf === ""
      ? undefined
      : new TextDecoder().decode(await files.read(node.resolvConf, maxResolvConfBytes));
  const { config, problems } = podDns(pod, {
    clusterDNS: node.clusterDNS,
    clusterDomain: node.clusterDomain,
    hostIPs: node.hostIPs,
    resolvConf,
  });
  for (const problem of problems) {
    // Without a cluster there is no cluster DNS to miss: pods use the node's resolver.
    const isOfCluster = pod.metadata.annotations?.[Annotation.configSource] === "api" || node.clusterDomain !== "";
    if (problem.reason === "MissingClusterDNS" && !isOfCluster) continue;
    const { reason: what, message, nodeMessage } = problem;
    journal.record({ kind: "note", what, message, pod: podRef(pod), ...(nodeMessage && { data: { nodeMessage } }) });
  }
  return config;
}
