import type { KubeletConfiguration } from "./defaults.ts";

const idsUnit = 65_536;
const mostIds = 2 ** 32 - 1;

/** Conflicts with the machine, in upstream's words; only the first, as upstream. */
export function validateMachine(
  configuration: KubeletConfiguration,
  { cgroupVersion }: { readonly cgroupVersion: 1 | 2 },
): string[] {
  const isV1 = cgroupVersion === 1;
  if (configuration.failCgroupV1 && isV1) {
    return [
      "kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is unsupported and will be removed in a future release: migrate to cgroup v2, or set failCgroupV1 to false",
    ];
  }
  const invalid = (problem: string): string[] => [`invalid configuration: ${problem}`];
  if (isV1 && configuration.singleProcessOOMKill === false) {
    return invalid("singleProcessOOMKill must not be explicitly set to false when using cgroup v1");
  }
  const ids = configuration.userNamespaces?.idsPerPod;
  if (ids === undefined) return [];
  if (ids < idsUnit) return invalid(`userNamespaces.idsPerPod must not be less than ${idsUnit}`);
  if (ids % idsUnit !== 0) return invalid(`userNamespaces.idsPerPod must be a multiple of ${idsUnit}`);
  return ids > mostIds ? invalid(`userNamespaces.idsPerPod must not be more than ${mostIds}`) : [];
}
