/**
 * `bare-statuses.ts KUBECONFIG NODE`: the floor of status updates. Reports Failed for each new pod of the node.
 * Notifies its parent when ready; SIGTERM ends it.
 */
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { ApiClient } from "../../src/api-client/client.ts";
import type { ApiObject, Resource } from "../../src/api-client/resource.ts";
import { Semaphore } from "../../src/base/semaphore.ts";
import { decodeKubeconfig } from "../../src/kube/kubeconfig.ts";
import { openKubeTransport } from "../../src/kube/transport.ts";
import { systemClock } from "../../src/linux/processes/clock.ts";
import { systemFiles } from "../../src/linux/files/files.ts";
import { systemProcesses } from "../../src/linux/processes/processes.ts";

/** Same concurrency as podwright. */
const writesAtOnce = 16;
/** Defaults of a KubeletConfiguration, as in the bench. */
const limits = {
  requests: { perSecond: 50, burst: 100 },
  events: { perSecond: 0, burst: 0 },
  heartbeatTimeoutMs: 10_000,
};

const pods: Resource<ApiObject> = {
  base: "/api/v1",
  plural: "pods",
  kind: "Pod",
  decode: (value) => value as ApiObject,
};

async function tell(kubeconfig: string, node: string): Promise<void> {
  const access = decodeKubeconfig(await readFile(kubeconfig, "utf8"), kubeconfig);
  if (access === undefined) throw new Error(`${kubeconfig} names no cluster`);
  const ports = { clock: systemClock, files: systemFiles, processes: systemProcesses };
  const transport = openKubeTransport(access, { ...ports, userAgent: "bare-client" });
  const client = new ApiClient({ transport, clock: systemClock }, limits);
  const { signal } = new AbortController();
  const places = new Semaphore(writesAtOnce);
  const query = { watch: true, fieldSelector: `spec.nodeName=${node}` };
  const stream = await client.watch({ lane: "objects", resource: pods, place: {}, query, signal });
  process.send?.("ready");
  for await (const line of createInterface({ input: Readable.from(stream) })) {
    const { type, object } = JSON.parse(line) as { readonly type: string; readonly object: ApiObject };
    if (type !== "ADDED") continue;
    const { name, namespace, uid } = object.metadata;
    const call = { lane: "status", resource: pods, place: { namespace, name, subresource: "status" }, signal } as const;
    void (async () => {
      using _place = await places.acquire();
      await client.patch(call, "strategic", { metadata: { uid }, status: refused() });
    })();
  }
}

/** The minimal status of a pod with a host port conflict. */
function refused(): object {
  return {
    phase: "Failed",
    reason: "NodePorts",
    message: "Pod was rejected: Node didn't have free ports for the requested pod ports",
    startTime: new Date().toISOString().replace(/\.\d+/u, ""),
  };
}

await tell(process.argv[2] ?? "", process.argv[3] ?? "");
