import * as z from "zod";

/** User and group ids of the node that a pod's user namespace stands for: `first` and those after it. */
export interface IdRange {
  readonly first: number;
  readonly length: number;
}

/** The ids of the node that pods share, and how many each gets. */
export interface PodIds extends IdRange {
  /** A multiple of {@link idUnit} (KubeletConfiguration's userNamespaces.idsPerPod). */
  readonly perPod: number;
}

/** Ranges begin and end at multiples of it: a pod has a whole 16-bit number of users, as images expect. */
export const idUnit = 65_536;
const idEnd = 2 ** 32;

/** All ids but the node's own, which are those that one pod would get from zero on. */
export function defaultPodIds(perPod: number): PodIds {
  // As upstream counts: a rest that no whole pod fits in is of no use.
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

/** The range as upstream keeps it in a pod's directory (pkg/kubelet/userns): Go's JSON, byte for byte. */
export function writeRange({ first, length }: IdRange): string {
  const mappings = [{ hostId: first, containerId: 0, length }];
  return JSON.stringify({ uidMappings: mappings, gidMappings: mappings });
}

/**
 * The range that a file of either kubelet holds.
 * @throws Error saying what is wrong with it; ids of the node's own users are never taken for a pod's
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
