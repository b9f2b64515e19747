import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLog } from "../../test/support/sources.ts";
import { tellPodCidr } from "./pod-cidr.ts";

test("the runtime of a standalone node receives podCIDR, and its failure stops nothing", async () => {
  const told: unknown[] = [];
  const warned: string[] = [];
  const log = { ...silentLog, warn: (message: string) => void warned.push(message) };
  const problems: Error[] = [];
  const updateRuntimeConfig = async (request: unknown): Promise<void> => {
    told.push(request);
    for (const problem of problems) throw problem;
  };
  await tellPodCidr({ runtime: { updateRuntimeConfig } }, log, "");
  assert.deepEqual(told, [], "nobody said anything");
  await tellPodCidr({ runtime: { updateRuntimeConfig } }, log, "10.1.0.0/24");
  assert.deepEqual(told, [{ runtimeConfig: { networkConfig: { podCidr: "10.1.0.0/24" } } }]);
  problems.push(new Error("unknown method"));
  await tellPodCidr({ runtime: { updateRuntimeConfig } }, log, "10.1.0.0/24");
  assert.deepEqual(warned, ["cannot send the pod CIDR to the container runtime"]);
});
