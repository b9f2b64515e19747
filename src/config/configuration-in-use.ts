import type { CgroupDriver } from "../resources/cgroup-names.ts";
import type { KubeletConfiguration } from "./defaults.ts";

/** What the start finds out, and the configuration only proposes. */
interface Found {
  /** The runtime's, where it reports one. */
  readonly cgroupDriver: CgroupDriver;
}

/**
 * The configuration that the kubelet shows: programs find the pods' cgroups by the driver in `/configz`, so that is the one in
 * use, not the one in the file. Pure.
 */
export function configurationInUse(configuration: KubeletConfiguration, { cgroupDriver }: Found): KubeletConfiguration {
  return { ...configuration, cgroupDriver };
}
