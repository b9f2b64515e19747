import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../base/ids.ts";
import { SimClock } from "../sim/clock.ts";
import { SimConnection } from "../sim/cri.ts";
import { noFaults } from "../sim/cri-faults.ts";
import { SimRandom } from "../sim/random.ts";
import { RuntimeWorld } from "../sim/runtime-world.ts";
import { inspectPod } from "./inspect.ts";

test("what is asked about and in no list is neither shown nor waited for, and may fail", async () => {
  const clock = new SimClock(0);
  const { cri } = new SimConnection(new RuntimeWorld(clock), clock.incarnation(), new SimRandom(1), noFaults);
  let hanging: AbortSignal | undefined;
  const runtime: typeof cri.runtime = {
    ...cri.runtime,
    containerStatus: (_, options) => {
      hanging = options?.signal;
      return new Promise(() => {});
    },
    podSandboxStatus: () => Promise.reject(new Error("no answer")),
  };
  const likely = { sandboxes: new Set(["s"]), containers: new Set(["c"]) };
  const look = inspectPod({ ...cri, runtime }, podUid("u"), likely, new AbortController().signal);
  await clock.run(1000);
  assert.deepEqual(await look, { uid: "u", name: "", namespace: "", sandboxes: [], containers: [] });
  assert.equal(hanging?.aborted, true);
});
