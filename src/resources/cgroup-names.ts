import { type PodUid, podUid } from "../base/ids.ts";
import type { QosClass } from "./qos.ts";

export type CgroupDriver = "cgroupfs" | "systemd";

/**
 * A cgroup by Kubernetes' own name: its components below the root of the hierarchy, e.g.
 * `["kubepods", "burstable", "pod1234-abcd"]`. Components hold neither `/` nor `_`, so that systemd's escaping can be
 * undone.
 */
export type CgroupName = readonly string[];

const sliceSuffix = ".slice";

/** The cgroup of all pods: `kubepods` below `cgroupRoot` (KubeletConfiguration, `/` by default). */
export function kubepodsCgroup(cgroupRoot: string): CgroupName {
  return [...parseCgroupfsPath(cgroupRoot), "kubepods"];
}

/** The cgroup that holds the pods of a QoS class: Guaranteed pods sit directly below `kubepods`. */
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

/** Path below the mount point of the hierarchy, cgroupfs names: `/kubepods/burstable/pod1234-abcd`. */
export function toCgroupfsPath(name: CgroupName): string {
  return `/${name.join("/")}`;
}

/** The inverse of {@link toCgroupfsPath}. */
export function parseCgroupfsPath(path: string): CgroupName {
  return path.split("/").filter((component) => component !== "");
}

/** The slice alone: `kubepods-burstable-pod1234_abcd.slice`; what runtimes take as cgroup parent under systemd. */
export function toSystemdSlice(name: CgroupName): string {
  if (name.length === 0) return "-.slice";
  return name.map((component) => component.replaceAll("-", "_")).join("-") + sliceSuffix;
}

/**
 * Path below the mount point of the hierarchy, systemd names: each slice within those whose name is its prefix, e.g.
 * `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1234_abcd.slice` (systemd.slice(5)).
 */
export function toSystemdPath(name: CgroupName): string {
  return `/${name.map((_, index) => toSystemdSlice(name.slice(0, index + 1))).join("/")}`;
}

/** The cgroup name behind a slice or a path of slices. */
export function parseSystemdName(path: string): CgroupName {
  const slice = path.slice(path.lastIndexOf("/") + 1);
  const stem = slice.endsWith(sliceSuffix) ? slice.slice(0, -sliceSuffix.length) : slice;
  return stem
    .split("-")
    .filter((component) => component !== "")
    .map((component) => component.replaceAll("_", "-"));
}

/** The path of a cgroup below the mount point of the hierarchy, as the driver names it. */
export function cgroupPath(name: CgroupName, driver: CgroupDriver): string {
  return driver === "systemd" ? toSystemdPath(name) : toCgroupfsPath(name);
}

/** `cgroup_parent` of a sandbox: the whole path under cgroupfs, the last slice alone under systemd. */
export function cgroupParent(name: CgroupName, driver: CgroupDriver): string {
  return driver === "systemd" ? toSystemdSlice(name) : toCgroupfsPath(name);
}

/**
 * The pod a cgroup directory below a QoS cgroup belongs to, for finding the cgroups of pods that are gone; undefined
 * for cgroups of anything else.
 */
export function podUidOfCgroup(directory: string, driver: CgroupDriver): PodUid | undefined {
  const last = (driver === "systemd" ? parseSystemdName(directory) : parseCgroupfsPath(directory)).at(-1);
  return last?.startsWith("pod") && last.length > 3 ? podUid(last.slice(3)) : undefined;
}

/** Whether a cgroup is the pod's or one below it, whichever driver named it. */
export function isCgroupOfPod(path: string, uid: PodUid): boolean {
  const slice = `-${toSystemdSlice([`pod${uid}`])}`;
  return parseCgroupfsPath(path).some((component) => component === `pod${uid}` || component.endsWith(slice));
}
