import type { NodeObject } from "../../src/api/node.ts";
import type { NodeIdentity, NodeObservation } from "../../src/node/node-status.ts";
import { vectorJson } from "./vectors.ts";
import { parseQuantity } from "../../src/resources/quantity.ts";

export interface RecordedNode extends NodeObject {
  readonly status: NonNullable<NodeObject["status"]> & Readonly<Record<string, unknown>>;
}
export const recorded = vectorJson<RecordedNode>("node.json");
export const recordedAt = Date.UTC(2026, 10, 20, 19, 33, 52);

/** The machine on which the Go kubelet's Node was recorded. */
export const identity: NodeIdentity = {
  name: "node1",
  facts: {
    processors: 2,
    memoryBytes: 24_684_096n * 1024n,
    swapBytes: 0n,
    hugePages: [
      { sizeBytes: 2n << 20n, count: 0n },
      { sizeBytes: 1n << 30n, count: 0n },
    ],
    kernelVersion: "6.18.44-fc-v595",
    osImage: "Debian GNU/Linux 12 (bookworm)",
    machineId: "3d1219c7c4c5404aaa1f6d2a48adfda4",
    systemUuid: "3d1219c7c4c5404aaa1f6d2a48adfda4",
    bootId: "ddac721e-2b6f-44bf-9b6d-d5bd63a7fe7b",
  },
  architecture: "amd64",
  apiPort: 10_250,
  kubeletVersion: "v1.36.2",
  capacity: {
    maxPods: 110,
    podsPerCore: 0,
    reserved: [],
    reservedSystemCpus: "",
    eviction: { memory: { amount: parseQuantity("100Mi") } },
  },
};
const runtime = {
  name: "containerd",
  version: "2.1.9+unknown",
  handlers: ["", "runc"].map((name) => ({ name, recursiveReadOnlyMounts: true, userNamespaces: false })),
  supplementalGroupsPolicy: true,
};
export const registration = {
  enabled: true,
  taints: [],
  labels: {},
  providerId: "",
  controllerAttaches: true,
  staleResources: [],
};
export const well: NodeObservation = {
  now: recordedAt,
  addresses: ["192.0.2.2"],
  runtime,
  problems: [],
  images: [],
  volumesInUse: [],
};
