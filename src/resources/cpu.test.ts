import { fc } from "../../test/support/fast-check.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { milliCpuToQuota, milliCpuToShares, quotaToMilliCpu, sharesToMilliCpu } from "./cpu.ts";

test("weights stay within the kernel's bounds", () => {
  assert.deepEqual([0n, 1n, 2n, 100n, 1000n, 10n ** 9n].map(milliCpuToShares), [2n, 2n, 2n, 102n, 1024n, 262_144n]);
});

test("no limit means no quota, and the minimum quota is a millisecond", () => {
  assert.deepEqual(
    [0n, 1n, 10n, 200n, 2000n].map((cpu) => milliCpuToQuota(cpu, 100_000n)),
    [0n, 1000n, 1000n, 20_000n, 200_000n],
  );
  assert.equal(milliCpuToQuota(500n, 10_000n), 5000n);
});

test("requests and limits can be computed from weights and quotas", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 10n, max: 256_000n }), (milliCpu) => {
      assert.equal(sharesToMilliCpu(milliCpuToShares(milliCpu)), milliCpu);
      assert.equal(quotaToMilliCpu(milliCpuToQuota(milliCpu, 100_000n), 100_000n), milliCpu);
    }),
  );
  assert.equal(quotaToMilliCpu(-1n, 100_000n), 0n);
  assert.equal(sharesToMilliCpu(0n), 0n);
});
