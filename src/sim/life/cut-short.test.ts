import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { deaf, ends, podOf, polite, runs, Scene } from "../../../test/support/sim-scene.ts";
import { ShutdownScene } from "../../../test/support/shutdown-scene.ts";
import type { Container } from "../../api/container.ts";
import type { Pod, PodSpec } from "../../api/pod.ts";
import type { PodStatus } from "../../api/status.ts";
import { evicted } from "../../eviction/evicted.ts";
import type { Cause } from "../../journal/entry.ts";
import type { RoomServices } from "../../kubelet/room.ts";
import { overdue } from "../../pods/active-deadline.ts";
import type { Ending } from "../../pods/ending.ts";
import { preempted, preempting, preemptionDisruption } from "../../pods/preemption.ts";
import { terminatedByShutdown } from "../../shutdown/ending.ts";
import { CutShort } from "../rules/cut-short.ts";

const cause: Cause = { code: "ObjectsChanged", message: "a test" };
const disk = "The node was low on resource: ephemeral-storage. ";
const endings: readonly ((pod: Pod) => Ending)[] = [
  (pod) => preempted(pod, 1, cause),
  () => evicted(disk, cause, 1, true),
  (pod) => terminatedByShutdown(pod, 1, cause, 10),
];

/** A node that may end its pods. */
class EndingScene extends Scene {
  readonly killer: () => RoomServices["killer"];

  constructor() {
    let services: RoomServices | undefined;
    super({}, undefined, () => [{ connect: (given) => void (services = given) }]);
    this.killer = () => {
      assert.ok(services);
      return services.killer;
    };
  }

  end(pod: Pod, ending: Ending): void {
    void this.killer().kill(pod, ending);
  }

  /** Phase and reason. */
  told(): readonly (string | undefined)[] {
    const { phase, reason } = this.status() ?? {};
    return [phase, reason];
  }

  /** All phases that were reported. */
  phases(): readonly unknown[] {
    return this.entries("PodPhaseChanged").map(({ data }) => data?.["to"]);
  }
}

function reasonOf(status: PodStatus | undefined, wanted: string): string | undefined {
  return status?.conditions?.find(({ type }) => type === wanted)?.reason;
}

/** What is told of a pod that the node preempts after 30 s. */
async function afterPreemption(spec: PodSpec, source = "api"): Promise<EndingScene> {
  const scene = new EndingScene();
  const made = podOf({ terminationGracePeriodSeconds: 5, ...spec });
  const annotations = { "kubernetes.io/config.source": source };
  const pod = { ...made, metadata: { ...made.metadata, annotations } };
  scene.node.add(pod);
  await scene.pass(30_000);
  scene.end(pod, preempted(pod, 1, cause));
  await scene.pass(30_000);
  return scene;
}

describe("a pod that the node ends", () => {
  test("has succeeded if its containers exit with 0, whyever it goes, and says so only when all have stopped", async () => {
    for (const ending of endings) {
      const scene = new EndingScene();
      const broken = scene.judge((of, report) => new CutShort(of, report));
      const slow = polite("slow", { lifecycle: { preStop: { sleep: { seconds: 3 } } } });
      const pod = podOf({ terminationGracePeriodSeconds: 30, containers: [polite("quick"), slow] });
      scene.node.add(pod);
      await scene.pass(10_000);
      scene.end(pod, { ...ending(pod), graceSeconds: 20 });
      await scene.pass(1000);
      assert.deepEqual(scene.told(), ["Running", undefined], "one of its containers has not stopped");
      await scene.pass(30_000);
      const status = scene.status();
      assert.deepEqual([...scene.told(), status?.message], ["Succeeded", undefined, undefined]);
      assert.equal(reasonOf(status, "DisruptionTarget"), "TerminationByKubelet");
      assert.deepEqual(
        ["Initialized", "Ready", "ContainersReady"].map((type) => reasonOf(status, type)),
        ["PodCompleted", "PodCompleted", "PodCompleted"],
      );
      assert.deepEqual(scene.phases(), ["Pending", "Running", "Succeeded"]);
      assert.deepEqual(broken, []);
    }
  });

  test("has failed, with the reason, if one of them exits otherwise, is killed, or has never run", async () => {
    const spoilers: readonly Container[] = [
      runs("spoiler"),
      deaf("spoiler"),
      polite("spoiler", { image: "missing:1" }),
    ];
    for (const spoiler of spoilers) {
      const scene = await afterPreemption({ containers: [polite("main"), spoiler] });
      assert.deepEqual(scene.told(), ["Failed", "Preempting"]);
      assert.equal(scene.status()?.message, preempting.message);
      const disruption = scene.status()?.conditions?.find(({ type }) => type === "DisruptionTarget");
      assert.equal(disruption?.message, preemptionDisruption);
    }
    const init = await afterPreemption({ initContainers: [polite("init")], containers: [polite("main")] });
    assert.deepEqual(init.told(), ["Failed", "Preempting"], "it was not initialized");
  });

  test("has succeeded with a sidecar that exits otherwise, and with containers that had exited with 0 before", async () => {
    const sidecar = runs("side", { restartPolicy: "Always" });
    const beside = await afterPreemption({ initContainers: [sidecar], containers: [polite("main")] });
    assert.deepEqual(beside.told(), ["Succeeded", undefined]);
    const containers = [polite("main"), ends("early", 5000, 0)];
    for (const [restartPolicy, told] of [
      ["Never", ["Succeeded", undefined]],
      ["OnFailure", ["Succeeded", undefined]],
      // It waits for its restart then.
      ["Always", ["Failed", "Preempting"]],
    ] as const) {
      const scene = await afterPreemption({ restartPolicy, containers });
      assert.deepEqual(scene.told(), told, restartPolicy);
    }
  });

  test("has failed if it is a static pod that would run again, because it has not ended for the cluster", async () => {
    for (const [restartPolicy, told] of [
      ["Always", ["Failed", "Preempting"]],
      ["Never", ["Succeeded", undefined]],
    ] as const) {
      const scene = await afterPreemption({ restartPolicy, containers: [polite("main")] }, "file");
      assert.deepEqual(scene.told(), told, restartPolicy);
    }
  });

  test("has failed at its deadline, also if it is evicted then", async () => {
    for (const isEvicted of [false, true]) {
      const scene = new EndingScene();
      const slow = polite("main", { lifecycle: { preStop: { sleep: { seconds: 60 } } } });
      const pod = podOf({ activeDeadlineSeconds: 10, terminationGracePeriodSeconds: 90, containers: [slow] });
      scene.node.add(pod);
      await scene.pass(20_000);
      if (isEvicted) scene.end(pod, evicted(disk, cause, 1, true));
      scene.world.exit(scene.container("main"), 0, "Completed");
      await scene.pass(120_000);
      assert.deepEqual(scene.told(), ["Failed", isEvicted ? "Evicted" : overdue(pod).cause.code]);
    }
  });

  test("stays as it ended over restarts, even if its containers are gone", async () => {
    for (const ending of endings) {
      const scene = new EndingScene();
      const pod = podOf({ containers: [polite("main")] });
      scene.node.add(pod);
      await scene.pass(10_000);
      scene.end(pod, ending(pod));
      await scene.pass(30_000);
      for (const { id } of scene.world.containers.values()) scene.world.removeContainer(id);
      scene.node.kill();
      scene.node.start();
      await scene.pass(60_000);
      assert.deepEqual(scene.told(), ["Succeeded", undefined]);
      assert.equal(reasonOf(scene.status(), "DisruptionTarget"), "TerminationByKubelet");
      assert.equal(scene.at("started main").length, 1);
    }
  });

  test("ends the same if podwright is killed while it stops", async () => {
    for (const [container, told] of [
      [polite("main"), ["Succeeded", undefined]],
      [deaf("main"), ["Failed", "Preempting"]],
    ] as const) {
      const scene = new EndingScene();
      using _watch = scene.world.onChange(({ type }) => {
        if (type === "stopping") scene.node.kill();
      });
      const pod = podOf({ terminationGracePeriodSeconds: 5, containers: [container] });
      scene.node.add(pod);
      await scene.pass(10_000);
      scene.end(pod, preempted(pod, 1, cause));
      await scene.pass(2000);
      _watch[Symbol.dispose]();
      scene.node.start();
      await scene.pass(60_000);
      assert.deepEqual(scene.told(), told);
      assert.equal(reasonOf(scene.status(), "DisruptionTarget"), "TerminationByKubelet");
      assert.equal(scene.at("started main").length, 1);
    }
  });

  test("in a shutdown has its result also after the reboot, and a static pod runs again", async () => {
    const scene = new ShutdownScene([{ priority: 0, graceSeconds: 10 }]);
    await scene.boot();
    scene.add("api", { containers: [polite("main")] });
    scene.add("static", { containers: [polite("main")] }, "file");
    await scene.pass(20_000);
    scene.login.announce();
    await scene.pass(5000);
    await scene.boot();
    await scene.pass(120_000);
    assert.deepEqual([scene.told("api"), scene.runs("api")], [["Succeeded", undefined], false]);
    assert.deepEqual([scene.told("static"), scene.runs("static")], [["Running", undefined], true]);
  });
});

test("the simulator notices a pod that is cut short and has another result than its containers", async () => {
  const result = async (container: Container, change: Partial<Ending>): Promise<readonly string[]> => {
    const scene = new EndingScene();
    const broken = scene.judge((of, report) => new CutShort(of, report));
    const pod = podOf({ terminationGracePeriodSeconds: 5, containers: [container] });
    scene.node.add(pod);
    await scene.pass(10_000);
    scene.end(pod, { ...preempted(pod, 1, cause), ...change });
    await scene.pass(30_000);
    return broken.map((problem) => problem.replace("exit codes decide about pods that the node ends: ", ""));
  };
  assert.deepEqual(await result(polite("main"), {}), []);
  assert.deepEqual(await result(runs("main"), {}), []);
  const failed = "uid-1 has failed, and all of its containers ended with 0";
  assert.deepEqual(await result(polite("main"), { outcome: "failed" }), [failed]);
  const silent = "uid-1 has failed for Preempting, and says undefined";
  assert.deepEqual(await result(runs("main"), { outcome: "asContainers" }), [
    silent,
    "uid-1 ends without DisruptionTarget",
  ]);
});
