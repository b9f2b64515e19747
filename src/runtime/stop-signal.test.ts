import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import type { Cri } from "../ports/cri.ts";
import { ContainerStatusResponseSchema, Signal } from "../ports/gen/runtime/v1/api_pb.js";
import { SimClock } from "../sim/clock.ts";
import { SimConnection } from "../sim/cri.ts";
import { noFaults } from "../sim/cri-faults.ts";
import { SimRandom } from "../sim/random.ts";
import { RuntimeWorld } from "../sim/runtime-world.ts";
import { honoursStopSignal, signalName, stopSignalOf } from "./stop-signal.ts";

const withSignal = (stopSignal: string) => ({ name: "c", lifecycle: { stopSignal } });

test("signals have CRI's names", () => {
  assert.equal(stopSignalOf({ name: "c" }), Signal.RUNTIME_DEFAULT);
  assert.equal(stopSignalOf(withSignal("SIGUSR1")), Signal.SIGUSR1);
  assert.equal(stopSignalOf(withSignal("SIGRTMIN+15")), Signal.SIGRTMINPLUS15);
  assert.equal(stopSignalOf(withSignal("SIGRTMAX-14")), Signal.SIGRTMAXMINUS14);
  assert.equal(stopSignalOf(withSignal("SIGNONE")), Signal.RUNTIME_DEFAULT);
  for (const name of ["SIGUSR1", "SIGRTMIN+15", "SIGRTMAX-14"]) {
    assert.equal(signalName(stopSignalOf(withSignal(name))), name, "and back");
  }
  assert.equal(signalName(Signal.RUNTIME_DEFAULT), undefined);
});

test("a runtime honours a signal when it shows it, and is not asked where there is none", async () => {
  const clock = new SimClock(0);
  const { cri } = new SimConnection(new RuntimeWorld(clock), clock.incarnation(), new SimRandom(1), noFaults);
  let asked = 0;
  const showing = (stopSignal: Signal): Cri => ({
    ...cri,
    runtime: {
      ...cri.runtime,
      containerStatus: async () => {
        asked++;
        return create(ContainerStatusResponseSchema, { status: { stopSignal } });
      },
    },
  });
  assert.equal(await honoursStopSignal(showing(Signal.RUNTIME_DEFAULT), { name: "c" }, "id"), true);
  assert.equal(asked, 0);
  assert.equal(await honoursStopSignal(showing(Signal.SIGUSR1), withSignal("SIGUSR1"), "id"), true);
  assert.equal(await honoursStopSignal(showing(Signal.RUNTIME_DEFAULT), withSignal("SIGUSR1"), "id"), false);
});
