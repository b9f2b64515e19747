import type { CgroupDriver } from "../resources/cgroup-names.ts";
import { parseCpuList } from "../resources/cpu-list.ts";
import type { KubeletConfiguration } from "./defaults.ts";
import { selfSignedFiles } from "./serving.ts";

/** What the start finds out, and the configuration only proposes. */
interface Found {
  /** The runtime's, where it reports one. */
  readonly cgroupDriver: CgroupDriver;
  /** The directory of the self-signed serving certificate; undefined: there is none. */
  readonly certificateDirectory?: string;
}

/**
 * The configuration that the kubelet shows: programs find the pods' cgroups by the driver in `/configz`, so that is the one in
 * use, not the one in the file. Pure.
 */
export function configurationInUse(
  configuration: KubeletConfiguration,
  { cgroupDriver, certificateDirectory }: Found,
): KubeletConfiguration {
  return {
    ...configuration,
    ...reservations(configuration),
    ...(certificateDirectory !== undefined && servingFiles(configuration, certificateDirectory)),
    cgroupDriver,
  };
}

/** Those of the self-signed certificate, unless it comes from elsewhere. */
function servingFiles(
  { serverTLSBootstrap = false, tlsCertFile = "", tlsPrivateKeyFile = "" }: KubeletConfiguration,
  directory: string,
): Pick<KubeletConfiguration, "tlsCertFile" | "tlsPrivateKeyFile"> {
  if (serverTLSBootstrap || tlsCertFile !== "" || tlsPrivateKeyFile !== "") return {};
  const { certificateFile, keyFile } = selfSignedFiles(directory);
  return { tlsCertFile: certificateFile, tlsPrivateKeyFile: keyFile };
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
