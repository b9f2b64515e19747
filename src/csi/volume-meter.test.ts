import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  NodeGetVolumeStatsResponseSchema,
  type NodeGetVolumeStatsResponse,
  VolumeUsage_Unit as Unit,
} from "../ports/gen/csi/v1/csi_pb.js";
import { RpcError } from "../ports/rpc.ts";
import { isSilence, type VolumeFigures } from "../volumes/volume-meter.ts";
import { CsiCallError } from "./call-error.ts";
import type { CsiClient } from "./csi-client.ts";
import type { CsiSource } from "./source.ts";
import { csiFigures, CsiMeter } from "./volume-meter.ts";

const signal = new AbortController().signal;
const source: Pick<CsiSource, "driver" | "handle" | "isMigrated"> = { driver: "d", handle: "h", isMigrated: false };
const names = { toldToDrivers: (path: string) => `/told${path}` };
const bytes = { unit: Unit.BYTES, total: 100n, used: 40n, available: 60n };
const inodes = { unit: Unit.INODES, total: 10n, used: 4n, available: 6n };
const volumeCondition = { abnormal: true, message: "worn out" };
const figures = { capacityBytes: 100, availableBytes: 60, usedBytes: 40, inodes: 10, inodesFree: 6, inodesUsed: 4 };
const worn = { condition: { abnormal: true, message: "worn out" } };

function answer(usage: readonly (typeof bytes)[], condition?: typeof volumeCondition): NodeGetVolumeStatsResponse {
  const said = condition === undefined ? {} : { volumeCondition: condition };
  return create(NodeGetVolumeStatsResponseSchema, { usage: [...usage], ...said });
}

test("a driver's values are used in any order, and missing ones are zero", () => {
  assert.deepEqual(csiFigures(answer([inodes, bytes]), false), figures);
  assert.deepEqual(csiFigures(answer([bytes]), false), { ...figures, inodes: 0, inodesFree: 0, inodesUsed: 0 });
  assert.equal(csiFigures(answer([bytes, inodes, { ...bytes, total: 7n }]), false).capacityBytes, 7);
  assert.throws(() => csiFigures(answer([]), false), /failed to get usage from response. usage is nil/);
});

test("a volume's health comes from the driver, and defaults to healthy", () => {
  assert.deepEqual(csiFigures(answer([bytes, inodes], volumeCondition), true), { ...figures, ...worn });
  assert.deepEqual(csiFigures(answer([bytes]), true).condition, { abnormal: false, message: "" });
  assert.equal(csiFigures(answer([bytes], volumeCondition), false).condition, undefined);
});

/** Reads a volume of a driver with these capabilities. */
async function read(
  can: readonly string[],
  asksHealth: boolean,
  stats: (request: unknown) => Promise<NodeGetVolumeStatsResponse>,
): Promise<VolumeFigures | undefined> {
  const client: Pick<CsiClient, "supports" | "stats"> = { supports: async (which) => can.includes(which), stats };
  const parts = { drivers: { get: () => client }, names, asksHealth };
  return await new CsiMeter(parts, { source, measured: "/p" }).read(signal);
}

test("a driver that cannot measure is not called, and health is requested from one that supports it, with the gate", async () => {
  const asked: unknown[] = [];
  const stats = async (request: unknown): Promise<NodeGetVolumeStatsResponse> => {
    asked.push(request);
    return answer([bytes, inodes], volumeCondition);
  };
  assert.equal(await read([], true, stats), undefined);
  assert.deepEqual(asked, []);
  assert.deepEqual(await read(["volumeStats"], true, stats), figures);
  assert.deepEqual(asked, [{ volumeId: "h", volumePath: "/told/p" }]);
  assert.deepEqual(await read(["volumeStats", "volumeCondition"], false, stats), figures);
  assert.deepEqual(await read(["volumeStats", "volumeCondition"], true, stats), { ...figures, ...worn });
});

test("a driver without a timely response is silent, one that fails is not", async () => {
  const failing = async (code: "DeadlineExceeded" | "Internal"): Promise<VolumeFigures | undefined> =>
    await read(["volumeStats"], false, async () => {
      throw new CsiCallError(new RpcError(code, "x"));
    });
  await assert.rejects(failing("DeadlineExceeded"), isSilence);
  await assert.rejects(failing("Internal"), (error) => !isSilence(error));
});
