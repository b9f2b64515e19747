import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { deaf, ends, podOf, runs, Scene } from "../../test/support/sim-scene.ts";
import type { PodSpec } from "../api/pod.ts";
import { CriError } from "../ports/cri.ts";
import { hookCommand } from "../sim/behaviour.ts";

describe("the start of a pod", () => {
  test("proceeds in order: volumes, sandbox, init containers one by one, then the others in the spec's order", async () => {
    const scene = new Scene();
    const spec: PodSpec = {
      volumes: [{ name: "v", emptyDir: {} }],
      initContainers: [ends("i1", 3000, 0), runs("side", { restartPolicy: "Always" }), ends("i2", 3000, 0)],
      containers: [runs("b", { volumeMounts: [{ name: "v", mountPath: "/v" }] }), runs("a")],
    };
    scene.node.add(podOf(spec));
    await scene.pass(30_000);
    const actions = scene.node.entries.filter(({ kind }) => kind === "action");
    const told = actions.map(({ what, container }) => (container === undefined ? what : `${what} ${container}`));
    const starts = ["i1", "side", "i2", "b", "a"].flatMap((name) => [
      `CreateContainer ${name}`,
      `StartContainer ${name}`,
    ]);
    assert.deepEqual(told, ["MountVolume", "RunPodSandbox", ...starts]);
    const [i1, side, i2] = ["i1", "side", "i2"].map((name) => scene.at(`started ${name}`)[0] ?? Number.NaN);
    assert.ok((side ?? 0) >= (i1 ?? 0) + 3000, "the sidecar waits for the init container's end");
    assert.ok((i2 ?? 0) < (side ?? 0) + 3000, "the next one does not wait for the sidecar's end");
    assert.ok((scene.at("started b")[0] ?? 0) >= (i2 ?? 0) + 3000);
  });

  test("that fails is retried after 10 to 15 s, and reports why meanwhile", async () => {
    const scene = new Scene();
    const env = [{ name: "X", valueFrom: { configMapKeyRef: { name: "nope", key: "k" } } }];
    scene.node.add(podOf({ containers: [runs("c", { env })] }));
    await scene.pass(120_000);
    const waits = scene.entries("StartRetry").map(({ until = 0, atMs }) => (until - 1_700_000_000_000 - atMs) / 1000);
    assert.ok(waits.length >= 5);
    for (const wait of waits) assert.ok(wait >= 9.9 && wait <= 15, String(wait));
    const told = /^container c waits 1\d s before its retry: CreateContainerConfigError: configmap "nope" not found$/;
    for (const { message } of scene.entries("StartRetry")) assert.match(message, told);
    const tries = scene.entries("ContainerConfigError");
    assert.ok(tries.length >= 5 && tries.every(({ message }) => message === 'configmap "nope" not found'));
    const waiting = scene.status()?.containerStatuses?.[0]?.state.waiting;
    assert.deepEqual([waiting?.reason, waiting?.message], ["CreateContainerConfigError", 'configmap "nope" not found']);
  });

  test("whose image cannot be pulled reports ErrImagePull, then ImagePullBackOff until the next pull", async () => {
    const scene = new Scene();
    scene.node.add(podOf({ containers: [runs("c", { image: "missing" })] }));
    const reasons: (string | undefined)[] = [];
    for (let second = 0; second < 100; second++) {
      await scene.pass(1000);
      const reason = scene.status()?.containerStatuses?.[0]?.state.waiting?.reason;
      if (reason !== reasons.at(-1)) reasons.push(reason);
    }
    const [creating, first, second, third, fourth] = reasons;
    assert.deepEqual(
      [creating, first, second, third, fourth],
      ["ContainerCreating", "ErrImagePull", "ImagePullBackOff", "ErrImagePull", "ImagePullBackOff"],
    );
    const pulls = scene.entries("PullImage").filter(({ kind }) => kind === "action");
    const failures = scene.entries("PullImage").filter(({ kind }) => kind === "outcome");
    const waits = pulls.slice(1).map(({ atMs }, index) => Math.floor((atMs - (failures[index]?.atMs ?? 0)) / 1000));
    assert.ok((waits[0] ?? 0) >= 10 && (waits[0] ?? 0) <= 15, String(waits));
    assert.deepEqual(waits.slice(1, 3), [20, 40]);
  });

  test("waits with the runtime's message while no sandbox can be created", async () => {
    const scene = new Scene();
    const runSandbox = scene.world.runSandbox.bind(scene.world);
    scene.world.runSandbox = () => {
      throw new CriError("Unknown", "RunPodSandbox", "cni plugin not initialized");
    };
    scene.node.add(podOf({ containers: [runs("c")] }));
    await scene.pass(5000);
    const waiting = scene.status()?.containerStatuses?.[0]?.state.waiting;
    assert.equal(waiting?.reason, "CreatePodSandboxError");
    assert.match(waiting.message ?? "", /cni plugin not initialized/);
    const [wait] = scene.entries("StartRetry");
    assert.match(wait?.message ?? "", /^the pod waits 1\d s before its retry: CreatePodSandboxError: .*cni plugin/);
    scene.world.runSandbox = runSandbox;
    await scene.pass(16_000);
    assert.equal(scene.status()?.phase, "Running");
  });

  test("with an impossible sandbox reports that without calling the runtime", async () => {
    const scene = new Scene();
    scene.node.add(podOf({ runtimeClassName: "none", containers: [runs("c")] }));
    await scene.pass(5000);
    const [told] = scene.entries("SandboxConfigError");
    assert.equal(told?.message, 'runtimeclass.node.k8s.io "none" not found');
    assert.equal(scene.status()?.containerStatuses?.[0]?.state.waiting?.message, told.message);
  });

  test("without space for its directories reports that without calling the runtime", async () => {
    const scene = new Scene();
    scene.faults.begin({ diskFull: true }, 3000);
    scene.node.add(podOf({ containers: [runs("c")] }));
    await scene.pass(2000);
    assert.match(scene.entries("FailedMakePodDataDirectories")[0]?.message ?? "", /^ENOSPC/);
    await scene.pass(60_000);
    assert.equal(scene.status()?.phase, "Running");
  });

  test("that the runtime refuses reports the call and the runtime's message", async () => {
    const scene = new Scene();
    const createContainer = scene.world.createContainer.bind(scene.world);
    scene.world.createContainer = (sandbox, config) => {
      if (config.metadata?.name === "a") throw new CriError("Unknown", "CreateContainer", "no room");
      return createContainer(sandbox, config);
    };
    scene.world.startContainer = () => {
      throw new CriError("Unknown", "StartContainer", "no such device");
    };
    scene.node.add(podOf({ containers: [runs("a"), runs("b")] }));
    await scene.pass(5000);
    const waiting = scene.status()?.containerStatuses?.map(({ state }) => state.waiting) ?? [];
    assert.deepEqual(
      waiting.map((state) => state?.reason),
      ["CreateContainerError", "RunContainerError"],
    );
    assert.match(waiting[0]?.message ?? "", /no room/);
    assert.match(waiting[1]?.message ?? "", /no such device/);
  });

  test("of a pod with the same name begins when everything of the earlier one is gone", async () => {
    const scene = new Scene();
    scene.node.add(podOf({ containers: [deaf("old")], terminationGracePeriodSeconds: 7 }));
    await scene.pass(5000);
    scene.node.remove("uid-1");
    scene.node.add(podOf({ containers: [runs("new")] }, "uid-2"));
    await scene.pass(30_000);
    const [gone, began] = [scene.at("sandboxRemoved uid-1")[0], scene.at("sandboxStarted uid-2")[0]];
    assert.ok(gone !== undefined && began !== undefined && began >= gone && gone >= 12_000);
    assert.equal(scene.container("new").state, "running");
  });

  test("of a pod that returns with its UID ignores observations from before its removal", async () => {
    const scene = new Scene();
    const pod = podOf({ restartPolicy: "Never", containers: [ends("c", 1000, 3)] });
    scene.node.add(pod);
    await scene.pass(10_000);
    assert.equal(scene.status()?.phase, "Failed");
    scene.node.remove("uid-1");
    while (scene.entries("PodFinished").length === 0) await scene.pass(1);
    const before = scene.node.entries.length;
    scene.node.add(pod);
    await scene.pass(10_000);
    const done = scene.node.entries.slice(before).filter(({ kind }) => kind === "action");
    assert.deepEqual(
      done.slice(0, 3).map(({ message }) => message),
      ["create the sandbox", "create container c, attempt 0", "start container c (c00000000003)"],
    );
  });
});

describe("the end of a pod", () => {
  test("restarts nothing: a container that exits while the pod is being deleted stays ended", async () => {
    const scene = new Scene();
    scene.node.add(podOf({ containers: [ends("short", 8000, 1), deaf("deaf")], terminationGracePeriodSeconds: 30 }));
    await scene.pass(5000);
    const [first] = scene.at("started short");
    scene.node.remove("uid-1");
    await scene.pass(60_000);
    assert.deepEqual(scene.at("started short"), [first]);
    assert.equal(scene.world.containers.size, 0);
  });

  test("is a failure if one of its containers never ran, for the pod and for the container", async () => {
    const scene = new Scene();
    const env = [{ name: "X", valueFrom: { configMapKeyRef: { name: "nope", key: "k" } } }];
    const pod = podOf({ containers: [runs("never", { env })] });
    scene.node.add(pod);
    await scene.pass(5000);
    assert.equal(scene.status()?.phase, "Pending");
    // As the API server deletes: the pod is removed when its last status was sent.
    const deletionTimestamp = new Date(scene.clock.wallMs).toISOString();
    scene.node.add({ ...pod, metadata: { ...pod.metadata, deletionTimestamp, deletionGracePeriodSeconds: 5 } });
    await scene.pass(10_000);
    const { phase, containerStatuses } = scene.status() ?? {};
    assert.equal(phase, "Failed");
    const { reason, exitCode } = containerStatuses?.[0]?.state.terminated ?? {};
    assert.deepEqual([reason, exitCode], ["ContainerStatusUnknown", 137]);
  });

  test("of a pod known only to the runtime has a grace period of 1 s, which StopContainer makes 2", async () => {
    const scene = new Scene();
    scene.node.add(podOf({ containers: [deaf("c")], terminationGracePeriodSeconds: 60 }));
    await scene.pass(5000);
    const forgotten = scene.node.files.removeTree("/var/lib/kubelet/pods/uid-1");
    await scene.pass(100);
    await forgotten;
    scene.node.kill();
    scene.node.desired.clear();
    scene.node.start();
    await scene.pass(15_000);
    const [stop] = scene.entries("StopContainer");
    assert.equal(stop?.data?.["graceSeconds"], 2);
    assert.equal(scene.entries("PodTerminating")[0]?.cause?.code, "OrphanedPod");
    assert.equal(scene.world.containers.size, 0);
  });

  test("of an orphan that podwright started has the pod's own grace period and order, also in the next run", async () => {
    const scene = new Scene();
    const side = deaf("side", { restartPolicy: "Always" });
    scene.node.add(podOf({ initContainers: [side], containers: [deaf("c")], terminationGracePeriodSeconds: 20 }));
    await scene.pass(5000);
    scene.node.kill();
    scene.node.desired.clear();
    scene.node.start();
    await scene.pass(60_000);
    const [first, second] = scene.entries("StopContainer").filter(({ kind }) => kind === "action");
    assert.deepEqual([first?.container, first?.data?.["graceSeconds"], second?.container], ["c", 20, "side"]);
    assert.ok((scene.at("exited c")[0] ?? Infinity) < (scene.at("exited side")[0] ?? 0));
    assert.equal(scene.world.containers.size, 0);
  });

  test("that an earlier run began is known before the node knows all its pods", async () => {
    const scene = new Scene();
    scene.node.add(podOf({ containers: [deaf("c")], terminationGracePeriodSeconds: 20 }));
    await scene.pass(5000);
    scene.node.kill();
    scene.node.desired.clear();
    scene.node.start();
    await scene.pass(100);
    assert.deepEqual([scene.node.knowsAllPods, scene.node.pods().length], [false, 0]);
    await scene.pass(5000);
    assert.equal(scene.node.knowsAllPods, true);
    assert.deepEqual(
      scene.node.pods().map(({ view }) => view.state.kind),
      ["terminating"],
    );
  });

  test("comes when its regular containers have ended: sidecars are stopped then, and do not affect the result", async () => {
    const scene = new Scene();
    const side = deaf("side", { restartPolicy: "Always" });
    const spec: PodSpec = {
      restartPolicy: "OnFailure",
      initContainers: [side],
      containers: [ends("job", 5000, 0)],
      terminationGracePeriodSeconds: 5,
    };
    scene.node.add(podOf(spec));
    await scene.pass(8000);
    assert.equal(scene.at("exited job").length, 1);
    assert.equal(scene.status()?.phase, "Running", "while its sidecar is being stopped");
    await scene.pass(60_000);
    const [done, stopped] = [scene.at("exited job")[0] ?? Number.NaN, scene.at("exited side")[0] ?? Number.NaN];
    assert.ok(stopped >= done + 5000 && stopped <= done + 8000);
    assert.equal(scene.at("started side").length, 1);
    assert.equal(scene.status()?.phase, "Succeeded");
    assert.equal(scene.status()?.initContainerStatuses?.[0]?.state.terminated?.exitCode, 137);
  });

  test("comes at its deadline, which is reported as the reason", async () => {
    const scene = new Scene();
    scene.node.add(podOf({ containers: [runs("c")], activeDeadlineSeconds: 20, terminationGracePeriodSeconds: 5 }));
    await scene.pass(19_000);
    assert.equal(scene.status()?.phase, "Running");
    await scene.pass(10_000);
    const { phase, reason, message } = scene.status() ?? {};
    assert.deepEqual(
      [phase, reason, message],
      ["Failed", "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"],
    );
    assert.equal(scene.entries("PodTerminating")[0]?.cause?.code, "DeadlineExceeded");
  });

  test("is reported when its last container has stopped, however long that takes", async () => {
    const scene = new Scene();
    const container = { ...runs("c"), command: [...(runs("c").command ?? []), "deaf"] };
    scene.node.add(podOf({ containers: [container], activeDeadlineSeconds: 20, terminationGracePeriodSeconds: 30 }));
    await scene.pass(40_000);
    assert.deepEqual([scene.status()?.phase, scene.status()?.reason], ["Running", undefined]);
    await scene.pass(20_000);
    assert.deepEqual([scene.status()?.phase, scene.status()?.reason], ["Failed", "DeadlineExceeded"]);
  });

  test("that the runtime refuses is reported and retried", async () => {
    const scene = new Scene();
    scene.node.add(podOf({ containers: [runs("c")], terminationGracePeriodSeconds: 1 }));
    await scene.pass(5000);
    const stopContainer = scene.world.stopContainer.bind(scene.world);
    scene.world.stopContainer = () => {
      throw new CriError("Unknown", "StopContainer", "the shim is stuck");
    };
    scene.node.remove("uid-1");
    await scene.pass(30_000);
    assert.ok(scene.entries("FailedKillPod").some(({ message }) => message.includes("the shim is stuck")));
    assert.ok(scene.status()?.containerStatuses?.[0]?.state.running);
    scene.world.stopContainer = stopContainer;
    await scene.pass(30_000);
    assert.equal(scene.world.containers.size, 0);
  });

  test("runs the preStop hooks of running containers only", async () => {
    const scene = new Scene();
    const preStop = { exec: { command: hookCommand({ kind: "preStop", exitCode: 0, durationMs: 100 }) } };
    const hooked = { lifecycle: { preStop } };
    const containers = [runs("up", hooked), ends("over", 1000, 0, hooked)];
    scene.node.add(podOf({ containers, restartPolicy: "Never" }));
    await scene.pass(10_000);
    scene.node.remove("uid-1");
    await scene.pass(10_000);
    assert.equal(scene.at("hook up").length, 1);
    assert.deepEqual(scene.at("hook over"), []);
  });
});

describe("a container that ends", () => {
  test("is restarted at once, then after 10 s, 20 s … from its end, with its reason in the status", async () => {
    const scene = new Scene();
    scene.node.add(podOf({ containers: [ends("c", 1000, 3)] }));
    await scene.pass(30_000);
    const waiting = scene.status()?.containerStatuses?.[0];
    assert.equal(waiting?.state.waiting?.reason, "CrashLoopBackOff");
    const message = "back-off 20s restarting failed container=c pod=web_default(uid-1)";
    assert.equal(waiting.state.waiting.message, message);
    assert.equal(waiting.lastState.terminated?.exitCode, 3);
    await scene.pass(60_000);
    const [exits, starts] = [scene.at("exited c"), scene.at("started c")];
    const waits = starts.slice(1).map((atMs, index) => Math.floor((atMs - (exits[index] ?? 0)) / 1000));
    assert.deepEqual(waits.slice(0, 3), [0, 10, 20]);
    const counts = [...scene.world.containers.values()].map(({ config }) => config.metadata?.attempt);
    assert.equal(Math.max(...counts.map((count) => count ?? 0)), starts.length - 1);
  });

  test("is reported to wait once after each exit, whatever else happens in its pod meanwhile", async () => {
    const scene = new Scene();
    scene.node.add(podOf({ containers: [ends("slow", 7000, 1), ends("c", 1000, 3)] }));
    await scene.pass(120_000);
    const waits = scene.entries("BackOff").filter(({ container }) => container === "c");
    const exits = scene.at("exited c").slice(1);
    assert.equal(waits.length, exits.length);
    const seconds = waits.map(({ message }) => / waits (\d+) s /.exec(message)?.[1]);
    assert.deepEqual(seconds.slice(0, 3), ["10", "20", "40"]);
  });

  test("finds its original hosts file, whatever an earlier instance wrote into it", async () => {
    const scene = new Scene();
    scene.node.add(podOf({ containers: [ends("c", 5000, 1)], hostAliases: [{ ip: "1.2.3.4", hostnames: ["a"] }] }));
    await scene.pass(2000);
    const path = "/var/lib/kubelet/pods/uid-1/etc-hosts";
    const read = async (): Promise<string> => new TextDecoder().decode(await scene.node.files.read(path, 10_000));
    const first = await read();
    assert.match(first, /^# Kubernetes-managed hosts file\.\n[^]*\tweb\n[^]*1\.2\.3\.4\ta\n$/);
    await scene.node.files.append(path, "6.6.6.6\tupdates.example\n", 0o644);
    await scene.pass(20_000);
    assert.ok(scene.at("started c").length > 1);
    assert.equal(await read(), first);
    assert.equal((await scene.node.files.stat(path))?.mode, 0o644);
  });

  test("with an exit for which its rule restarts all: they end without grace period or hooks, it last, and the pod starts over", async () => {
    const scene = new Scene();
    const preStop = { exec: { command: hookCommand({ kind: "preStop", exitCode: 0, durationMs: 100 }) } };
    const source = ends("source", 5000, 88, {
      restartPolicy: "Never",
      restartPolicyRules: [{ action: "RestartAllContainers", exitCodes: { operator: "In", values: [88] } }],
    });
    const spec: PodSpec = {
      initContainers: [ends("init", 1000, 0)],
      containers: [source, deaf("other", { lifecycle: { preStop } })],
      terminationGracePeriodSeconds: 60,
    };
    scene.node.add(podOf(spec));
    await scene.pass(12_000);
    const exitMs = scene.at("exited source")[0] ?? Number.NaN;
    assert.deepEqual(scene.at("hook other"), []);
    const killedMs = (scene.at("exited other")[0] ?? Number.NaN) - exitMs;
    assert.ok(killedMs >= 2000 && killedMs < 3000, `killed after ${killedMs} ms`);
    const removed = scene.seen.filter(({ what }) => what.startsWith("removed ")).map(({ what }) => what.slice(8));
    assert.deepEqual(removed.toSorted(), ["init", "other", "source"]);
    assert.equal(removed.at(-1), "source");
    assert.equal(scene.at("started init").length, 2);
    assert.equal(scene.at("sandboxStarted uid-1").length, 1, "in its sandbox");
    await scene.pass(2000);
    assert.equal(scene.at("started other").length, 2);
  });

  test("at once with an exit for which its rule restarts all: its pod starts over with a back-off, as after any crash", async () => {
    const scene = new Scene();
    const source = ends("source", 0, 88, {
      restartPolicy: "Never",
      restartPolicyRules: [{ action: "RestartAllContainers", exitCodes: { operator: "In", values: [88] } }],
    });
    scene.node.add(podOf({ containers: [source, deaf("other")] }));
    await scene.pass(100_000);
    const waits = scene.at("started source").map((atMs, index, all) => atMs - (all[index - 1] ?? 0));
    assert.equal(waits.length, 5, `waits of ${waits.join(", ")} ms`);
    for (const [index, leastMs] of [10_000, 20_000, 40_000].entries()) {
      const waitedMs = waits[index + 2] ?? 0;
      assert.ok(waitedMs >= leastMs && waitedMs < leastMs + 3000, `${waitedMs} ms instead of ${leastMs}`);
    }
  });
});
