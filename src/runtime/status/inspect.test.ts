import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { podUid } from "../../base/ids.ts";
import { ContainerConfigSchema, PodSandboxConfigSchema } from "../../ports/gen/runtime/v1/api_pb.js";
import { SimClock } from "../../sim/clock.ts";
import { SimConnection } from "../../sim/cri.ts";
import { noFaults } from "../../sim/cri-faults.ts";
import { SimRandom } from "../../sim/random.ts";
import { crioWays } from "../../sim/runtime-ways.ts";
import { RuntimeWorld } from "../../sim/runtime-world.ts";
import { inspectPod } from "./inspect.ts";

test("queried IDs that are in no list are neither shown nor awaited, and may fail", async () => {
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

test("a container that ended before it ran was never started, whatever start time the runtime reports", async () => {
  const clock = new SimClock(0);
  const world = new RuntimeWorld(clock, undefined, crioWays);
  const { cri } = new SimConnection(world, clock.incarnation(), new SimRandom(1), noFaults);
  const labels = { "io.kubernetes.pod.uid": "u" };
  const metadata = { name: "web", namespace: "default", uid: "u", attempt: 0 };
  const containerId = world.createContainer(
    world.runSandbox(create(PodSandboxConfigSchema, { metadata, labels })),
    create(ContainerConfigSchema, { metadata: { name: "c", attempt: 0 }, labels, command: ["sim", "run"] }),
  );
  world.stopContainer(
    containerId,
    0,
    () => true,
    () => {},
  );
  await clock.run(10);
  const likely = { sandboxes: new Set<string>(), containers: new Set<string>() };
  const look = inspectPod(cri, podUid("u"), likely, new AbortController().signal);
  await clock.run(1000);
  const [container] = (await look).containers;
  assert.equal(world.containers.get(containerId)?.state, "exited");
  assert.deepEqual([container?.state, container?.startedAt], ["created", 0n]);
});
