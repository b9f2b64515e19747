import { isCriticalPod } from "../api/pod-kind.ts";
import type { Pod } from "../api/pod.ts";
import { parseList, podLimits } from "../resources/pod-totals.ts";
import { parseQuantity, quantityOf } from "../resources/quantity.ts";
import type { FileSystems } from "./file-systems.ts";
import type { PodUsage } from "./pod-usage.ts";

/** Label eviction_signal of kubelet_evictions for pods that exceed a limit of their own. */
export type LimitSignal = "emptydirfs.limit" | "ephemeralpodfs.limit" | "ephemeralcontainerfs.limit";

/** A limit that the pod exceeds, in upstream's words. */
export interface PassedLimit {
  readonly signal: LimitSignal;
  readonly message: string;
  /** Bytes. */
  readonly used: number;
  readonly limit: number;
}

const ephemeral = "ephemeral-storage";

export function hasStorageLimit(pod: Pod): boolean {
  return hasLayerLimit(pod) || sizedVolumes(pod).length > 0;
}

/** Whether a limit includes writable layers, which only the runtime can measure. */
export function hasLayerLimit(pod: Pod): boolean {
  return podLimits(pod).has(ephemeral);
}

/**
 * The first limit that a pod exceeds: of a volume, then of the pod, then of a container (upstream's
 * localStorageEviction). Critical pods are exempt. As upstream, writable layers on their own file system do not count
 * for container limits; nor do they while it is not known where they are. Pure.
 */
export function passedLimit(pod: Pod, usage: PodUsage, fileSystems: FileSystems | undefined): PassedLimit | undefined {
  if (isCriticalPod(pod)) return undefined;
  return passedByVolume(pod, usage) ?? passedByPod(pod, usage) ?? passedByContainer(pod, usage, fileSystems);
}

function sizedVolumes(pod: Pod): { readonly name: string; readonly text: string; readonly limit: bigint }[] {
  return (pod.spec.volumes ?? []).flatMap(({ name, emptyDir }) => {
    if (emptyDir?.sizeLimit === undefined) return [];
    const quantity = parseQuantity(emptyDir.sizeLimit);
    return quantity.nanos > 0n ? [{ name, text: quantity.toString(), limit: quantity.value() }] : [];
  });
}

function passedByVolume(pod: Pod, { volumes }: PodUsage): PassedLimit | undefined {
  for (const { name, text, limit } of sizedVolumes(pod)) {
    const used = volumes.find((volume) => volume.name === name)?.bytes;
    if (used === undefined || BigInt(used) <= limit) continue;
    const message = `Usage of EmptyDir volume ${quoted(name)} exceeds the limit ${quoted(text)}. `;
    return { signal: "emptydirfs.limit", message, used, limit: Number(limit) };
  }
  return undefined;
}

function passedByPod(pod: Pod, { ephemeralBytes: used = 0 }: PodUsage): PassedLimit | undefined {
  const limit = podLimits(pod).get(ephemeral);
  if (limit === undefined || quantityOf(BigInt(used), "BinarySI").compare(limit) <= 0) return undefined;
  const message = `Pod ephemeral local storage usage exceeds the total limit of containers ${limit.toString()}. `;
  return { signal: "ephemeralpodfs.limit", message, used, limit: Number(limit.value()) };
}

function passedByContainer(
  pod: Pod,
  { containers }: PodUsage,
  fileSystems: FileSystems | undefined,
): PassedLimit | undefined {
  for (const { name, logs, rootfs } of containers) {
    const spec = pod.spec.containers.find((container) => container.name === name);
    const limit = parseList(spec?.resources?.limits).get(ephemeral);
    if (limit === undefined || limit.isZero) continue;
    const used = (logs?.bytes ?? 0) + (fileSystems === "one" ? (rootfs?.bytes ?? 0) : 0);
    if (quantityOf(BigInt(used), "BinarySI").compare(limit) <= 0) continue;
    const message = `Container ${name} exceeded its local ephemeral storage limit ${quoted(limit.toString())}. `;
    return { signal: "ephemeralcontainerfs.limit", message, used, limit: Number(limit.value()) };
  }
  return undefined;
}

/** Names and quantities contain nothing that Go would escape. */
function quoted(text: string): string {
  return JSON.stringify(text);
}
