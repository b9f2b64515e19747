import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import { parseList } from "../resources/pod-totals.ts";
import { quantityOf, zeroQuantity } from "../resources/quantity.ts";
import { thresholdQuantity } from "../resources/threshold-value.ts";
import type { ContainerUsage, PodUsage } from "./pod-usage.ts";
import { amountText, type Observations } from "./pressure.ts";
import { resourceOf, type StarvedResource, type Threshold } from "./thresholds.ts";

/** The messages of an eviction for the node. */
export interface EvictionMessage {
  readonly message: string;
  /** For its Event. */
  readonly annotations: Readonly<Record<string, string>>;
}

/** Why the node has to reclaim something. */
export interface Starvation {
  readonly resource: StarvedResource;
  /** Due thresholds, most urgent first. */
  readonly due: readonly Threshold[];
  readonly observations: Observations;
}

/** Upstream's message (evictionMessage); each sentence ends with a blank. Pure. */
export function evictionMessage(
  pod: Pod,
  usage: PodUsage | undefined,
  { resource, due, observations }: Starvation,
): EvictionMessage {
  const low = `The node was low on resource: ${resource}. ${thresholdSentence(resource, due, observations)}`;
  if (usage === undefined) return { message: low, annotations: {} };
  const ofPod = podSentence(pod, usage, resource);
  const offenders = offendersOf(pod, usage, resource);
  const sentences = offenders.map(
    ({ name, used, request }) =>
      `Container ${name} was using ${used}, request is ${request}, has larger consumption of ${resource}. `,
  );
  return {
    message: `${low}${ofPod?.sentence ?? ""}${sentences.join("")}`,
    annotations: {
      ...(ofPod && { offending_pod: pod.metadata.name, offending_pod_usage: ofPod.used }),
      offending_containers: offenders.map(({ name }) => name).join(","),
      offending_containers_usage: offenders.map(({ used }) => used).join(","),
      starved_resource: resource,
    },
  };
}

/** For the first due threshold of the resource. */
function thresholdSentence(resource: StarvedResource, due: readonly Threshold[], observations: Observations): string {
  const threshold = due.find(({ signal }) => resourceOf(signal) === resource && observations.has(signal));
  const observed = threshold && observations.get(threshold.signal);
  if (threshold === undefined || observed === undefined) return "";
  const quantity = thresholdQuantity(threshold.value, observed.capacity).toString();
  return `Threshold quantity: ${quantity}, available: ${amountText(resource, observed.available)}. `;
}

/** Only for pods with pod-level memory requests (KEP-2837). */
function podSentence(
  { metadata, spec }: Pod,
  { memoryBytes }: PodUsage,
  resource: StarvedResource,
): { readonly sentence: string; readonly used: string } | undefined {
  const request = resource === "memory" ? parseList(spec.resources?.requests).get("memory") : undefined;
  if (request === undefined || memoryBytes === undefined) return undefined;
  const used = bytesText(memoryBytes);
  const { name } = metadata;
  const sentence = `Pod ${name} was using ${used}, request is ${request.toString()}, has larger consumption of memory. `;
  return { sentence, used };
}

interface Offender {
  readonly name: string;
  readonly used: string;
  readonly request: string;
}

/** Containers and init containers above their request. Ephemeral containers have no requests. */
function offendersOf({ spec }: Pod, usage: PodUsage, resource: StarvedResource): Offender[] {
  const containers: readonly Container[] = [...spec.containers, ...(spec.initContainers ?? [])];
  return usage.containers.flatMap((container): Offender[] => {
    const { name } = container;
    const known = containers.find((each) => each.name === name);
    const bytes = containerBytes(container, resource);
    if (known === undefined || bytes === undefined) return [];
    const used = quantityOf(BigInt(bytes), "BinarySI");
    const request = parseList(known.resources?.requests).get(resource) ?? zeroQuantity;
    return used.compare(request) > 0 ? [{ name, used: used.toString(), request: request.toString() }] : [];
  });
}

function containerBytes({ memoryBytes, rootfs, logs }: ContainerUsage, resource: StarvedResource): number | undefined {
  if (resource === "memory") return memoryBytes;
  if (resource !== "ephemeral-storage" || rootfs === undefined || logs === undefined) return undefined;
  return rootfs.bytes + logs.bytes;
}

function bytesText(bytes: number): string {
  return quantityOf(BigInt(bytes), "BinarySI").toString();
}
