/** The kernel's bounds of cpu.shares. */
export const minShares = 2n;
const maxShares = 262_144n;
const sharesPerCpu = 1024n;
/** The kernel's minimum in microseconds. */
const minQuota = 1000n;

/** cpu.shares for a CPU request; the minimum for zero. */
export function milliCpuToShares(milliCpu: bigint): bigint {
  const shares = (milliCpu * sharesPerCpu) / 1000n;
  return shares < minShares ? minShares : shares > maxShares ? maxShares : shares;
}

/** The CPU request of cpu.shares, rounded up. */
export function sharesToMilliCpu(shares: bigint): bigint {
  return shares < minShares ? 0n : (shares * 1000n + sharesPerCpu - 1n) / sharesPerCpu;
}

/** cpu.cfs_quota_us for a CPU limit; 0 for none. Quota and period in microseconds. */
export function milliCpuToQuota(milliCpu: bigint, period: bigint): bigint {
  if (milliCpu === 0n) return 0n;
  const quota = (milliCpu * period) / 1000n;
  return quota < minQuota ? minQuota : quota;
}

/** The CPU limit of a quota; 0 for none. */
export function quotaToMilliCpu(quota: bigint, period: bigint): bigint {
  return quota <= 0n || period <= 0n ? 0n : (quota * 1000n) / period;
}
