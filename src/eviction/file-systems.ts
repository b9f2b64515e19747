import { resourceOf, type Signal, type Threshold } from "./thresholds.ts";

/**
 * Where images and writable layers are stored. one: with the pods' directories. imagefs: both on their own file system.
 * split: images on their own, writable layers with the pods' directories (KEP-4191).
 */
export type FileSystems = "one" | "imagefs" | "split";

/** The parts of a pod's storage on the node's disks. */
export type StoragePart = "rootfs" | "logs" | "volumes";

/** What is reclaimed at node level before a pod is evicted. */
export type NodeGarbageKind = "containers" | "images";

/** By the numbers of file systems; undefined: unknown, and if one is, the whole is. Pure. */
export function fileSystemsOf(devices: {
  readonly node: number | undefined;
  readonly images: number | undefined;
  readonly containers: number | undefined;
}): FileSystems | undefined {
  const { node, images, containers } = devices;
  if (node === undefined || images === undefined || containers === undefined) return undefined;
  if (images === node) return "one";
  return containers === images ? "imagefs" : "split";
}

/**
 * Containerfs is either nodefs or imagefs, and has its thresholds (upstream's UpdateContainerFsThresholds). Pure.
 * @param fileSystems undefined: it is not known yet which it is, and it has none
 */
export function withContainerFs(
  thresholds: readonly Threshold[],
  fileSystems: FileSystems | undefined,
): readonly Threshold[] {
  if (fileSystems === undefined) return thresholds;
  const home = fileSystems === "imagefs" ? "imagefs" : "nodefs";
  const signalOf = (signal: Signal): Signal | undefined => {
    if (signal === `${home}.available`) return "containerfs.available";
    return signal === `${home}.inodesFree` ? "containerfs.inodesFree" : undefined;
  };
  const derived = thresholds.flatMap((threshold): Threshold[] => {
    const signal = signalOf(threshold.signal);
    return signal === undefined ? [] : [{ ...threshold, signal }];
  });
  return [...thresholds, ...derived];
}

/**
 * The parts of a pod's storage that count in the ranking for a signal; none for signals other than disks; undefined: not
 * known. Pure.
 */
export function storageParts(signal: Signal, fileSystems: FileSystems | undefined): readonly StoragePart[] | undefined {
  const fileSystem = fileSystemOf(signal);
  if (fileSystem === undefined) return [];
  // Wherever layers are, these are on the node's own disk.
  if (fileSystems === undefined) return fileSystem === "nodefs" ? ["logs", "volumes"] : undefined;
  const all = ["rootfs", "logs", "volumes"] as const;
  if (fileSystems === "one") return all;
  if (fileSystems === "split") return fileSystem === "imagefs" ? [] : all;
  return fileSystem === "nodefs" ? ["logs", "volumes"] : ["rootfs"];
}

/**
 * The garbage to reclaim first for a signal, in this order. While it is not known where it lies, dead containers for the
 * node's own disk: nobody misses them, but images would have to be pulled again. Pure.
 */
export function nodeGarbage(signal: Signal, fileSystems: FileSystems | undefined): readonly NodeGarbageKind[] {
  const fileSystem = fileSystemOf(signal);
  if (fileSystem === undefined) return [];
  if (fileSystems === undefined) return fileSystem === "nodefs" ? ["containers"] : [];
  if (fileSystems === "one") return ["containers", "images"];
  if (fileSystems === "split") return fileSystem === "imagefs" ? ["images"] : ["containers"];
  return fileSystem === "nodefs" ? [] : ["containers", "images"];
}

/** Whether the signal is about a disk. */
export function isOfDisk(signal: Signal): boolean {
  return fileSystemOf(signal) !== undefined;
}

/** Whether nothing is known of the signal's disk while it is not known where images and layers are. */
export function needsLayout(signal: Signal): boolean {
  const fileSystem = fileSystemOf(signal);
  return fileSystem !== undefined && fileSystem !== "nodefs";
}

function fileSystemOf(signal: Signal): "nodefs" | "imagefs" | "containerfs" | undefined {
  const resource = resourceOf(signal);
  if (resource === "memory" || resource === "pids") return undefined;
  return (["nodefs", "imagefs", "containerfs"] as const).find((name) => signal.startsWith(name));
}
