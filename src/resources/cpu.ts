/** Kernel's bounds of cpu.shares. */
export const minShares = 2n;
const maxShares = 262_144n;
const sharesPerCpu = 1024n;
/** Microseconds: the kernel takes no smaller quota. */
const minQuota = 1000n;

/** cpu.shares for a CPU request; zero and missing requests get the least there is. */
export function milliCpuToShares(milliCpu: bigint): bigint {
  const shares = (milliCpu * sharesPerCpu) / 1000n;
  return shares < minShares ? minShares : shares > maxShares ? maxShares : shares;
}

/** The CPU request behind cpu.shares, rounded up. */
export function sharesToMilliCpu(shares: bigint): bigint {
  return shares < minShares ? 0n : (shares * 1000n + sharesPerCpu - 1n) / sharesPerCpu;
}

/** cpu.cfs_quota_us for a CPU limit; 0 when there is none. Both in microseconds. */
export function milliCpuToQuota(milliCpu: bigint, period: bigint): bigint {
  if (milliCpu === 0n) return 0n;
  const quota = (milliCpu * period) / 1000n;
  return quota < minQuota ? minQuota : quota;
}

/** The CPU limit behind a quota; 0 when there is none. */
export function quotaToMilliCpu(quota: bigint, period: bigint): bigint {
  return quota <= 0n || period <= 0n ? 0n : (quota * 1000n) / period;
}
