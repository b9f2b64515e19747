import type { ConnectRouter } from "@connectrpc/connect";
import type { KubeletConfiguration } from "../config/defaults.ts";
import { featureGates } from "../config/feature-gates.ts";
import { serveGrpc } from "../grpc/server.ts";
import type { Node } from "../engine/node.ts";
import { listenPrivately } from "../linux/http/unix-socket.ts";
import { podResources, podResourcesAlpha } from "../pods-api/pod-resources.ts";
import { type PodNews, podsService } from "../pods-api/pods-service.ts";
import { Pods } from "../ports/gen/pods/v1alpha1/api_pb.js";
import { PodResourcesLister } from "../ports/gen/podresources/v1/api_pb.js";
import { PodResourcesLister as PodResourcesListerAlpha } from "../ports/gen/podresources/v1alpha1/api_pb.js";
import type { PodsApiMetrics } from "../metrics/pods-api-metrics.ts";
import type { Logger } from "../ports/log.ts";
import type { Ports } from "../ports/ports.ts";
import { keepServing } from "./keep-serving.ts";

export interface PodsApisParts {
  readonly ports: Ports;
  readonly log: Logger;
  readonly configuration: KubeletConfiguration;
  readonly rootDirectory: string;
  readonly metrics: PodsApiMetrics;
}

/** Upstream's rate limit of each socket. */
const limit = { perSecond: 100, burst: 10 };

/**
 * Serves the gRPC APIs for monitoring agents on sockets below the root directory, until the signal aborts. Failures are
 * logged and retried: they keep no pod from running.
 */
export async function servePodsApis(parts: PodsApisParts, node: Node, signal: AbortSignal): Promise<void> {
  const { metrics } = parts;
  const gates = featureGates(parts.configuration.featureGates);
  const listsEnded = !gates.enabled("KubeletPodResourcesListUseActivePods");
  const resources = (router: ConnectRouter): void => {
    router.service(
      PodResourcesLister,
      podResources(() => node.desiredPods(), listsEnded, metrics),
    );
    router.service(
      PodResourcesListerAlpha,
      podResourcesAlpha(() => node.desiredPods(), metrics),
    );
  };
  const pods = (router: ConnectRouter): void => {
    const source = {
      pods: () => node.desiredPods(),
      watch: (listener: (news: PodNews) => void) => node.watchPods(listener),
      dropped: () => metrics.watcherDropped(),
    };
    router.service(Pods, podsService(source));
  };
  await Promise.all([
    serve(parts, "pod-resources/kubelet.sock", resources, signal),
    gates.enabled("PodsAPI") ? serve(parts, "pods-api/pods-api.sock", pods, signal) : undefined,
  ]);
}

async function serve(
  { ports, log, rootDirectory }: PodsApisParts,
  name: string,
  routes: (router: ConnectRouter) => void,
  signal: AbortSignal,
): Promise<void> {
  const { clock, files } = ports;
  const path = `${rootDirectory}/${name}`;
  await keepServing({ clock, log }, path, signal, async () => {
    await files.makeDirectory(path.slice(0, path.lastIndexOf("/")), 0o750);
    const server = await serveGrpc(
      routes,
      { clock, limit },
      async (listening) => await listenPrivately(listening, path),
    );
    log.info("serving a gRPC API", { path });
    return server;
  });
}
