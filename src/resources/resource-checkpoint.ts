import * as z from "zod";
import { ResourceRequirements } from "../api/container.ts";
import { fnv32a } from "../base/fnv.ts";
import { type PodUid, podUid } from "../base/ids.ts";
import { parseList } from "./pod-totals.ts";

/** Resources of a pod's containers, and pod-level resources. */
export interface PodResources {
  /** Regular and init containers by name. */
  readonly containers: ReadonlyMap<string, ResourceRequirements>;
  /** `spec.resources` (KEP-2837); undefined when the pod has none. */
  readonly pod: ResourceRequirements | undefined;
}

const Entries = z.object({
  entries: z
    .record(
      z.string(),
      z.object({
        ContainerResources: z.record(z.string(), ResourceRequirements).nullish(),
        PodLevelResources: ResourceRequirements.nullish(),
      }),
    )
    .nullish(),
});
const Checkpoint = z.object({ data: z.string(), checksum: z.number() });

/**
 * The checkpoint of pods' resources by UID, byte for byte in the Go kubelet's format of `allocated_pods_state` and
 * `actuated_pods_state`: JSON in JSON with a checksum, sorted keys, canonical quantities.
 */
export function encodeCheckpoint(pods: ReadonlyMap<PodUid, PodResources>): string {
  const entries: string[] = [];
  for (const uid of [...pods.keys()].toSorted()) {
    const resources = pods.get(uid);
    if (resources !== undefined) entries.push(`${JSON.stringify(uid)}:${entryText(resources)}`);
  }
  const data = entries.length === 0 ? "{}" : `{"entries":{${entries.join(",")}}}`;
  return JSON.stringify({ data, checksum: checksum(data) });
}

/** A node keeps thousands of ended pods, and each start of a pod writes the whole file. */
const entryTexts = new WeakMap<PodResources, string>();

function entryText(resources: PodResources): string {
  const known = entryTexts.get(resources);
  if (known !== undefined) return known;
  const { containers, pod } = resources;
  const text = JSON.stringify({
    ContainerResources: sorted(containers, encodeRequirements),
    PodLevelResources: pod === undefined ? null : encodeRequirements(pod),
  });
  entryTexts.set(resources, text);
  return text;
}

/**
 * The inverse of {@link encodeCheckpoint}.
 * @throws Error for an invalid text or checksum
 */
export function decodeCheckpoint(text: string): Map<PodUid, PodResources> {
  const checkpoint = Checkpoint.parse(JSON.parse(text));
  const computed = checksum(checkpoint.data);
  if (checkpoint.checksum !== computed) {
    throw new Error(`checksum ${checkpoint.checksum} does not match the content's ${computed}`);
  }
  const { entries } = Entries.parse(JSON.parse(checkpoint.data));
  return new Map(
    Object.entries(entries ?? {}).map(([uid, { ContainerResources, PodLevelResources }]) => [
      podUid(uid),
      { containers: new Map(Object.entries(ContainerResources ?? {})), pod: PodLevelResources ?? undefined },
    ]),
  );
}

/** Upstream hashes go-spew's %#v text of the string. */
function checksum(data: string): number {
  return fnv32a(`(string)${data}`);
}

/** Requirements in the Go kubelet's format: sorted keys, canonical quantities, nothing empty. Pure. */
export function encodeRequirements({ limits, requests, claims }: ResourceRequirements): object {
  return {
    ...(limits && Object.keys(limits).length > 0 && { limits: quantities(limits) }),
    ...(requests && Object.keys(requests).length > 0 && { requests: quantities(requests) }),
    ...(claims && claims.length > 0 && { claims }),
  };
}

function quantities(list: NonNullable<ResourceRequirements["limits"]>): Record<string, unknown> {
  return sorted(parseList(list), (quantity) => quantity.toString());
}

function sorted<V>(map: ReadonlyMap<string, V>, encode: (value: V) => unknown): Record<string, unknown> {
  const entries = [...map].toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, value]) => [key, encode(value)]));
}
