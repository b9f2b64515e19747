import type { CgroupDriver } from "../resources/cgroup-names.ts";
import { parseCpuList } from "../resources/cpu-list.ts";
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
  return { ...configuration, ...reservations(configuration), cgroupDriver };
}

/**
 * reservedSystemCPUs replaces the reserved amounts of CPU. As upstream, a systemReserved that is not given is not shown
 * either.
 */
function reservations({
  reservedSystemCPUs = "",
  kubeReserved,
  systemReserved,
}: KubeletConfiguration): Pick<KubeletConfiguration, "kubeReserved" | "systemReserved"> {
  if (reservedSystemCPUs === "") return {};
  const { cpu: _replaced, ...others } = kubeReserved ?? {};
  const cpu = String(parseCpuList(reservedSystemCPUs).size);
  return {
    kubeReserved: Object.keys(others).length === 0 ? undefined : others,
    systemReserved: systemReserved && { ...systemReserved, cpu },
  };
}
