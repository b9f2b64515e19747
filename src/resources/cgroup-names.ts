import { type PodUid, podUid } from "../base/ids.ts";
import type { QosClass } from "./qos.ts";

export type CgroupDriver = "cgroupfs" | "systemd";

/**
 * A cgroup's name in Kubernetes: its components below the root of the hierarchy, e.g. `["kubepods", "burstable",
 * "pod1234-abcd"]`. Components contain neither `/` nor `_`, so that systemd's escaping is reversible.
 */
export type CgroupName = readonly string[];

const sliceSuffix = ".slice";

/** The cgroup of all pods: `kubepods` below `cgroupRoot` (KubeletConfiguration, `/` by default). */
export function kubepodsCgroup(cgroupRoot: string): CgroupName {
  return [...parseCgroupfsPath(cgroupRoot), "kubepods"];
}

/** The parent of the cgroups of a QoS class's pods; `kubepods` itself for Guaranteed. */
export function qosCgroup(cgroupRoot: string, qosClass: QosClass): CgroupName {
  const kubepods = kubepodsCgroup(cgroupRoot);
  switch (qosClass) {
    case "Guaranteed":
      return kubepods;
    case "Burstable":
      return [...kubepods, "burstable"];
    case "BestEffort":
      return [...kubepods, "besteffort"];
  }
}

/** The cgroup of one pod, parent of its containers' cgroups. */
export function podCgroup(cgroupRoot: string, qosClass: QosClass, uid: PodUid): CgroupName {
  return [...qosCgroup(cgroupRoot, qosClass), `pod${uid}`];
}

/** Path below the hierarchy's mount point, with cgroupfs names: `/kubepods/burstable/pod1234-abcd`. */
export function toCgroupfsPath(name: CgroupName): string {
  return `/${name.join("/")}`;
}

/** The inverse of {@link toCgroupfsPath}. */
export function parseCgroupfsPath(path: string): CgroupName {
  return path.split("/").filter((component) => component !== "");
}

/** The slice's name, `kubepods-burstable-pod1234_abcd.slice`: the cgroup parent that runtimes expect under systemd. */
export function toSystemdSlice(name: CgroupName): string {
  if (name.length === 0) return "-.slice";
  return name.map((component) => component.replaceAll("-", "_")).join("-") + sliceSuffix;
}

/**
 * Path below the hierarchy's mount point, with systemd names: each slice is within those of its prefixes, e.g.
 * `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1234_abcd.slice` (systemd.slice(5)).
 */
export function toSystemdPath(name: CgroupName): string {
  return `/${name.map((_, index) => toSystemdSlice(name.slice(0, index + 1))).join("/")}`;
}

/** The cgroup name of a slice or a path of slices. */
export function parseSystemdName(path: string): CgroupName {
  const slice = path.slice(path.lastIndexOf("/") + 1);
  const stem = slice.endsWith(sliceSuffix) ? slice.slice(0, -sliceSuffix.length) : slice;
  return stem
    .split("-")
    .filter((component) => component !== "")
    .map((component) => component.replaceAll("_", "-"));
}

/** Path below the hierarchy's mount point, with the driver's names. */
export function cgroupPath(name: CgroupName, driver: CgroupDriver): string {
  return driver === "systemd" ? toSystemdPath(name) : toCgroupfsPath(name);
}

/** A sandbox's `cgroup_parent`: the full path for cgroupfs, only the last slice for systemd. */
export function cgroupParent(name: CgroupName, driver: CgroupDriver): string {
  return driver === "systemd" ? toSystemdSlice(name) : toCgroupfsPath(name);
}

/** The pod of a directory below a QoS cgroup, to find cgroups of removed pods; undefined for other directories. */
export function podUidOfCgroup(directory: string, driver: CgroupDriver): PodUid | undefined {
  const last = (driver === "systemd" ? parseSystemdName(directory) : parseCgroupfsPath(directory)).at(-1);
  return last?.startsWith("pod") && last.length > 3 ? podUid(last.slice(3)) : undefined;
}

/** Whether a cgroup is the pod's or below it, with either driver's names. */
export function isCgroupOfPod(path: string, uid: PodUid): boolean {
  const slice = `-${toSystemdSlice([`pod${uid}`])}`;
  return parseCgroupfsPath(path).some((component) => component === `pod${uid}` || component.endsWith(slice));
}
