import * as z from "zod";

/** The node's user and group IDs that a pod's user namespace maps: `first` and those after it. */
export interface IdRange {
  readonly first: number;
  readonly length: number;
}

/** The pool of IDs for pods, and the number for each. */
export interface PodIds extends IdRange {
  /** A multiple of {@link idUnit} (KubeletConfiguration's userNamespaces.idsPerPod). */
  readonly perPod: number;
}

/** Ranges are aligned to it: a pod has whole multiples of 65,536 users, as images expect. */
export const idUnit = 65_536;
const idEnd = 2 ** 32;

/** All IDs except the node's own, which are the first `perPod`. */
export function defaultPodIds(perPod: number): PodIds {
  // As upstream: a remainder too small for a pod is unused.
  return { first: perPod, length: Math.floor((idEnd - perPod) / perPod) * perPod, perPod };
}

export function overlaps(a: IdRange, b: IdRange): boolean {
  return a.first < b.first + b.length && b.first < a.first + a.length;
}

export function isSameRange(a: IdRange, b: IdRange): boolean {
  return a.first === b.first && a.length === b.length;
}

const mapping = z.object({
  hostId: z.int().min(0).max(idEnd),
  containerId: z.int().min(0).max(idEnd),
  length: z.int().min(1).max(idEnd),
});
const rangeFile = z.object({ uidMappings: z.array(mapping), gidMappings: z.array(mapping) });

/** The range as upstream stores it in a pod's directory (pkg/kubelet/userns): Go's JSON, byte for byte. */
export function writeRange({ first, length }: IdRange): string {
  const mappings = [{ hostId: first, containerId: 0, length }];
  return JSON.stringify({ uidMappings: mappings, gidMappings: mappings });
}

/**
 * Parses the file of either kubelet.
 * @throws Error with the problem; IDs of the node's own users are never accepted
 */
export function readRange(text: string): IdRange {
  const { data: file } = rangeFile.safeParse(JSON.parse(text));
  if (file === undefined) throw new RangeError("it holds no ID mappings");
  const [uids, ...moreUids] = file.uidMappings;
  const [gids, ...moreGids] = file.gidMappings;
  if (uids === undefined || gids === undefined || moreUids.length + moreGids.length > 0) {
    throw new RangeError("it must hold one UID mapping and one GID mapping");
  }
  const same = uids.hostId === gids.hostId && uids.length === gids.length && uids.containerId === gids.containerId;
  if (!same) throw new RangeError("its UID and GID mappings differ");
  if (uids.containerId !== 0) throw new RangeError("it does not map UID 0");
  const { hostId: first, length } = uids;
  if (first < idUnit || first % idUnit !== 0 || length % idUnit !== 0 || first + length > idEnd) {
    throw new RangeError(`IDs ${first} to ${first + length - 1} are not the range of a pod`);
  }
  return { first, length };
}
