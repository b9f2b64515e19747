import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import type { Cri } from "../../ports/cri.ts";
import {
  ContainerConfigSchema,
  ContainerStatusResponseSchema,
  PodSandboxConfigSchema,
  Signal,
} from "../../ports/gen/runtime/v1/api_pb.js";
import { SimClock } from "../../sim/clock.ts";
import { SimConnection } from "../../sim/cri.ts";
import { noFaults } from "../../sim/cri-faults.ts";
import { SimRandom } from "../../sim/random.ts";
import { RuntimeWorld } from "../../sim/runtime-world.ts";
import { crioWays } from "../../sim/runtime-ways.ts";
import { configuredSignal, honoursStopSignal, signalName, stopSignalOf } from "./stop-signal.ts";

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

test("a runtime honours a signal that it shows, and is not queried without one", async () => {
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

test("a runtime that shows the signal only in the container's runtime configuration honours it, too", async () => {
  const clock = new SimClock(0);
  const world = new RuntimeWorld(clock, undefined, crioWays);
  const { cri } = new SimConnection(world, clock.incarnation(), new SimRandom(1), noFaults);
  const sandbox = world.runSandbox(create(PodSandboxConfigSchema, { metadata: { name: "pod", uid: "uid-1" } }));
  const config = create(ContainerConfigSchema, { metadata: { name: "c" }, stopSignal: Signal.SIGRTMINPLUS3 });
  const id = world.createContainer(sandbox, config);
  const honours = async (signal: string): Promise<boolean> => {
    const answer = honoursStopSignal(cri, withSignal(signal), id);
    await clock.run(clock.nowMs + 100);
    return await answer;
  };
  assert.equal(await honours("SIGRTMIN+3"), true);
  assert.equal(await honours("SIGUSR1"), false, "the image's, say");
});

test("a verbose status is parsed defensively: signals by name or number, nothing from anything else", () => {
  const told = (annotation: unknown): Signal => {
    const annotations = { "org.opencontainers.image.stopSignal": annotation };
    return configuredSignal({ info: JSON.stringify({ pid: 1, runtimeSpec: { annotations } }) });
  };
  for (const text of ["SIGUSR1", "usr1", "USR1", "10"]) assert.equal(told(text), Signal.SIGUSR1, text);
  for (const text of ["SIGRTMIN+1", "RTMIN+1", "SIGRTMINPLUS1", "35"]) assert.equal(told(text), Signal.SIGRTMINPLUS1);
  for (const text of ["SIGRTMAX-1", "63"]) assert.equal(told(text), Signal.SIGRTMAXMINUS1, text);
  for (const [text, signal] of [
    ["1", Signal.SIGHUP],
    ["15", Signal.SIGTERM],
    ["31", Signal.SIGSYS],
    ["34", Signal.SIGRTMIN],
    ["49", Signal.SIGRTMINPLUS15],
    ["50", Signal.SIGRTMAXMINUS14],
    ["64", Signal.SIGRTMAX],
  ] as const) {
    assert.equal(told(text), signal, text);
  }
  for (const odd of [
    "",
    "0",
    "32",
    "33",
    "65",
    "99",
    "-1",
    "1e1",
    "NONE",
    "RUNTIME_DEFAULT",
    "SIG",
    "toString",
    10,
    {},
  ]) {
    assert.equal(told(odd), Signal.RUNTIME_DEFAULT, JSON.stringify(odd));
  }
  const texts = ["", "{", "null", "[]", "7", '"x"', '{"runtimeSpec":null}', '{"runtimeSpec":{"annotations":[1]}}'];
  const deep = `${'{"runtimeSpec":'.repeat(100_000)}1${"}".repeat(100_000)}`;
  const proto = '{"__proto__":{"runtimeSpec":{"annotations":{"org.opencontainers.image.stopSignal":"SIGUSR1"}}}}';
  for (const info of [...texts, deep, proto]) assert.equal(configuredSignal({ info }), Signal.RUNTIME_DEFAULT);
  assert.equal(configuredSignal({}), Signal.RUNTIME_DEFAULT);
});
