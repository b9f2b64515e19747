import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { fc } from "../../../test/support/fast-check.ts";
import { testSandbox } from "../../../test/support/observed.ts";
import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import { podUid, sandboxId } from "../../base/ids.ts";
import type { JournalInput } from "../../journal/entry.ts";
import type { Cri } from "../../ports/cri.ts";
import * as pb from "../../ports/gen/runtime/v1/api_pb.js";
import { behaviourCommand, hookCommand } from "../../sim/behaviour.ts";
import { SimClock } from "../../sim/clock.ts";
import { MemoryFiles } from "../../sim/files.ts";
import { SimConnection } from "../../sim/cri.ts";
import { noFaults } from "../../sim/cri-faults.ts";
import { silentLog } from "../../sim/machine.ts";
import { simNetworkProbes } from "../../sim/network-probes.ts";
import { SimRandom } from "../../sim/random.ts";
import { RuntimeWorld } from "../../sim/runtime-world.ts";
import type { Effects } from "../effects.ts";
import { inspectPod, noIds } from "../status/inspect.ts";
import { remainsOf } from "../status/remains.ts";
import { Annotation, Label } from "../config/labels.ts";
import { Places } from "../../base/places.ts";
import type { PodStatus } from "../status/pod-status.ts";
import { ContainerRemoval } from "./container-removal.ts";
import { HookRunner } from "./hooks.ts";
import { PodStopper } from "./pod-stopper.ts";
import { PreStopHooks } from "./pre-stop-hooks.ts";
import { Teardowns } from "./teardown.ts";

const cause = { code: "ManifestRemoved", message: "its manifest was removed" } as const;
const ref = { namespace: "default", name: "pod", uid: podUid("uid-1") };
/** What the simulated runtime takes for its calls, beside what is waited for. */
const callsMs = 100;

interface Script {
  readonly name: string;
  readonly sidecar: boolean;
  readonly deaf: boolean;
  /** Duration and exit code; undefined: no hook. */
  readonly preStop: { readonly durationMs: number; readonly exitCode: number } | undefined;
}

interface Seen {
  readonly atMs: number;
  readonly what: "hook" | "stopping" | "exited";
  readonly name: string;
  readonly timeoutMs: number | undefined;
}

/** One pod that runs in the simulated runtime, and what happens to it. */
class Scene {
  readonly clock = new SimClock(1_700_000_000_000);
  readonly world = new RuntimeWorld(this.clock);
  readonly preStops = new PreStopHooks();
  readonly effects: Effects;
  readonly stopper: PodStopper;
  readonly seen: Seen[] = [];
  readonly entries: JournalInput[] = [];
  readonly pod: Pod;

  constructor(scripts: readonly Script[]) {
    const clock = this.clock.incarnation();
    const { cri } = new SimConnection(this.world, clock, new SimRandom(1), noFaults);
    const journal = { record: (entry: JournalInput) => this.entries.push(entry) };
    const files = new MemoryFiles(clock);
    this.effects = { clock, random: new SimRandom(2), cri, files, journal, log: silentLog };
    this.stopper = this.stopperOf(cri);
    const containers = scripts.map(containerOf);
    this.pod = {
      metadata: { ...ref, uid: podUid(ref.uid) },
      spec: {
        initContainers: containers.filter((_, index) => scripts[index]?.sidecar),
        containers: containers.filter((_, index) => !scripts[index]?.sidecar),
      },
    };
    const labels = { [Label.podUid]: ref.uid };
    const made = create(pb.PodSandboxConfigSchema, { metadata: { ...ref, attempt: 0 }, labels });
    const sandbox = this.world.runSandbox(made);
    for (const { name, command = [], lifecycle } of containers) {
      const annotations = { [Annotation.preStopHandler]: JSON.stringify(lifecycle?.preStop ?? {}) };
      const config = create(pb.ContainerConfigSchema, { metadata: { name, attempt: 0 }, command, labels, annotations });
      this.world.startContainer(this.world.createContainer(sandbox, config));
    }
    this.world.onChange(({ type, container, timeoutMs }) => {
      if (type !== "hook" && type !== "stopping" && type !== "exited") return;
      const name = container?.config.metadata?.name ?? "";
      this.seen.push({ atMs: this.clock.nowMs, what: type, name, timeoutMs });
    });
  }

  /** One that stops what runs in this runtime. */
  stopperOf(cri: Cri): PodStopper {
    const effects = { ...this.effects, cri };
    const node = { hostIPs: [], containerLogsRoot: "/var/log/containers", podLogsRoot: "/var/log/pods" };
    const places = new Places(this.effects, { kind: "a teardown", limit: 1, patienceMs: 1000 });
    return new PodStopper(effects, {
      hooks: new HookRunner(effects, simNetworkProbes),
      preStops: this.preStops,
      removal: new ContainerRemoval(effects, { preStops: this.preStops, node }),
      teardowns: new Teardowns(this.effects.clock, places),
      objects: { secret: () => undefined },
      node,
    });
  }

  async status(): Promise<PodStatus> {
    const look = inspectPod(this.effects.cri, podUid(ref.uid), noIds, new AbortController().signal);
    return await this.finish(look);
  }

  /** Lets time pass until the work has ended. */
  async finish<T>(work: Promise<T>): Promise<T> {
    let ended = false;
    const end = (): void => {
      ended = true;
    };
    work.then(end, end);
    assert.ok(await this.clock.run(this.clock.nowMs + 3_600_000, () => ended), "it never ends");
    return await work;
  }

  kill(
    status: PodStatus,
    graceSeconds: number,
    signal = new AbortController().signal,
    pod: Pod | undefined = this.pod,
  ) {
    return this.stopper.stopPod({ ref, pod, graceSeconds, cause }, remainsOf(status), signal);
  }

  times(what: Seen["what"], name: string): number[] {
    return this.seen.filter((seen) => seen.what === what && seen.name === name).map(({ atMs }) => atMs);
  }
}

function containerOf({ name, sidecar, deaf, preStop }: Script): Container {
  const command = behaviourCommand({ exitAfterMs: undefined, exitCode: 0, deaf, unstartable: false });
  return {
    name,
    image: "b",
    command,
    ...(sidecar && { restartPolicy: "Always" }),
    ...(preStop && { lifecycle: { preStop: { exec: { command: hookCommand({ kind: "preStop", ...preStop }) } } } }),
  };
}

const isKilling = ({ what }: JournalInput): boolean => what === "Killing";

const plain: Script = { name: "app", sidecar: false, deaf: false, preStop: undefined };
const hooked = (durationMs: number, exitCode = 0): Script => ({ ...plain, preStop: { durationMs, exitCode } });

/** ms since `from`, to the tenth of a second that the runtime's own calls may take. */
function assertAfter(actual: number | undefined, from: number, ms: number): void {
  const passed = (actual ?? Number.NaN) - from;
  assert.ok(passed >= ms && passed <= ms + callsMs, `${passed} ms after, not ${ms}`);
}

describe("stopPod", () => {
  test("a hook's time counts into the grace period, and the container gets the rest", async () => {
    const scene = new Scene([{ ...hooked(4000), deaf: true }]);
    const status = await scene.status();
    const began = scene.clock.nowMs;
    await scene.finish(scene.kill(status, 10));
    assertAfter(scene.times("hook", "app")[0], began, 0);
    assertAfter(scene.times("stopping", "app")[0], began, 4000);
    assert.equal(scene.seen.find(({ what }) => what === "stopping")?.timeoutMs, 6000);
    assertAfter(scene.times("exited", "app")[0], began, 10_000);
  });

  test("a hook that outlasts the grace period leaves two seconds, which it may use, too", async () => {
    const scene = new Scene([{ ...hooked(5500, 1), deaf: true }]);
    const status = await scene.status();
    const began = scene.clock.nowMs;
    await scene.finish(scene.kill(status, 5));
    assertAfter(scene.times("stopping", "app")[0], began, 5000);
    assertAfter(scene.times("exited", "app")[0], began, 7000);
    const told = scene.entries.map(({ what }) => what).filter((what) => /Overdue|Failed/.test(what));
    assert.deepEqual(told, ["PreStopHookOverdue", "FailedPreStopHook"]);
  });

  test("a failed hook is reported and stops nothing", async () => {
    const scene = new Scene([hooked(100, 3)]);
    await scene.finish(scene.kill(await scene.status(), 30));
    assert.equal(scene.times("exited", "app").length, 1);
    const failure = scene.entries.find(({ what }) => what === "FailedPreStopHook");
    assert.equal(failure?.message, "the preStop hook of container app failed: exited with code 3");
    assert.equal(failure?.data?.["eventMessage"], "PreStopHook failed: exited with code 3");
  });

  test("is reported for each container at once: before its hook, and before it waits for its turn", async () => {
    const scene = new Scene([{ ...plain, name: "side", sidecar: true }, hooked(4000), { ...plain, name: "bare" }]);
    const status = await scene.status();
    const began = scene.clock.nowMs;
    const work = scene.kill(status, 30);
    const killings = (): string[] => scene.entries.filter(isKilling).map(({ container = "" }) => container);
    await scene.clock.run(began + callsMs);
    assert.deepEqual(killings().toSorted(), ["app", "bare", "side"]);
    assert.deepEqual(scene.times("stopping", "side"), []);
    assert.ok(scene.entries.findIndex(isKilling) < scene.entries.findIndex(({ what }) => what === "PreStopHook"));
    await scene.finish(work);
    await scene.finish(scene.kill(status, 5));
    assert.equal(killings().length, 3, "another try is no other kill");
    const { signal } = new AbortController();
    const evicted = { code: "Evicted", message: "the node has no memory" } as const;
    await scene.finish(
      scene.stopper.stopPod({ ref, pod: scene.pod, graceSeconds: 5, cause: evicted }, remainsOf(status), signal),
    );
    assert.equal(killings().length, 6);
  });

  test("that was canceled before it began is not reported", async () => {
    const scene = new Scene([plain]);
    const signal = AbortSignal.abort(new Error("canceled"));
    await assert.rejects(scene.finish(scene.kill(await scene.status(), 5, signal)));
    assert.deepEqual(scene.entries.filter(isKilling), []);
  });

  test("without a grace period no hook runs", async () => {
    const scene = new Scene([hooked(100)]);
    await scene.finish(scene.kill(await scene.status(), 0));
    assert.deepEqual(scene.times("hook", "app"), []);
    assert.equal(scene.times("exited", "app").length, 1);
  });

  test("with a shorter grace period the running hook continues, and its container is stopped at the new time", async () => {
    const scene = new Scene([{ ...hooked(60_000), deaf: true }]);
    const status = await scene.status();
    const controller = new AbortController();
    const first = scene.kill(status, 60, controller.signal).catch((error: unknown) => error);
    await scene.clock.run(scene.clock.nowMs + 1000);
    const reason = new Error("canceled");
    controller.abort(reason);
    assert.equal(await scene.finish(first), reason);
    const again = scene.clock.nowMs;
    await scene.finish(scene.kill(status, 3));
    assert.equal(scene.times("hook", "app").length, 1);
    assertAfter(scene.times("stopping", "app")[0], again, 3000);
    assertAfter(scene.times("exited", "app")[0], again, 5000);
  });

  test("a pod known only to the runtime has the hooks that its containers were created with", async () => {
    const scene = new Scene([hooked(200)]);
    const status = await scene.status();
    const target = { ref, pod: undefined, graceSeconds: 1, cause };
    await scene.finish(scene.stopper.stopPod(target, remainsOf(status), new AbortController().signal));
    assert.equal(scene.times("hook", "app").length, 1);
    assertAfter(scene.times("stopping", "app")[0], scene.times("hook", "app")[0] ?? Number.NaN, 200);
  });

  test("hooks end with podwright", async () => {
    const scene = new Scene([hooked(60_000)]);
    const status = await scene.status();
    const controller = new AbortController();
    const work = scene.kill(status, 90, controller.signal).catch(() => {});
    await scene.clock.run(scene.clock.nowMs + 1000);
    scene.preStops.close();
    controller.abort(new Error("the engine is stopping"));
    await scene.finish(work);
    await scene.clock.run(scene.clock.nowMs + 1000);
    assert.deepEqual(scene.clock.pending(), []);
  });
});

test("a container stopped without a hook gets none later", async () => {
  const scene = new Scene([{ ...hooked(200), deaf: true }]);
  const status = await scene.status();
  const controller = new AbortController();
  // As when all containers of a pod start over, and that is canceled.
  const work = scene.kill(status, 0, controller.signal).catch(() => {});
  await scene.clock.run(scene.clock.nowMs + 1000);
  controller.abort(new Error("canceled"));
  await scene.finish(work);
  await scene.finish(scene.kill(status, 30));
  assert.deepEqual(scene.times("hook", "app"), []);
  assert.equal(scene.times("stopping", "app").length, 2);
});

test("killContainer runs the hook before the stop signal, within the given grace period", async () => {
  const scene = new Scene([{ ...hooked(1000), deaf: true }]);
  const { containers } = await scene.status();
  const [container] = containers;
  assert.ok(container);
  const began = scene.clock.nowMs;
  const { signal } = new AbortController();
  const stop = { ref, pod: scene.pod, graceSeconds: 5, cause, container, sandboxIPs: [] };
  await scene.finish(scene.stopper.stopContainer(stop, signal));
  assertAfter(scene.times("stopping", "app")[0], began, 1000);
  assertAfter(scene.times("exited", "app")[0], began, 5000);
});

const script = fc.record({
  sidecar: fc.boolean(),
  deaf: fc.boolean(),
  preStop: fc.option(fc.record({ durationMs: fc.integer({ min: 0, max: 20_000 }), exitCode: fc.constantFrom(0, 1) }), {
    nil: undefined,
  }),
});

test("whatever containers and hooks do: hooks once and first, no SIGKILL before the grace period ends, sidecars last, and it ends", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(script, { minLength: 1, maxLength: 5 }),
      fc.integer({ min: 0, max: 15 }),
      fc.option(
        fc.record({ afterMs: fc.integer({ min: 0, max: 12_000 }), graceSeconds: fc.integer({ min: 1, max: 5 }) }),
      ),
      async (drawn, graceSeconds, shorter) => {
        const scripts = drawn.map((one, index) => ({ ...one, name: `c${index}` }));
        const scene = new Scene(scripts);
        const killAtMs = await killTwice(scene, graceSeconds, shorter);
        const mayRun = graceSeconds > 0;
        for (const { name, preStop } of scripts) judge(scene, name, mayRun && preStop !== undefined, killAtMs);
        judgeOrder(scene, scripts, killAtMs);
      },
    ),
    { numRuns: 150 },
  );
});

test("sandboxes are stopped one by one, and a hanging one delays the others by only a second", async () => {
  const scene = new Scene([plain]);
  const { cri, clock } = scene.effects;
  const stops: [id: string, atMs: number][] = [];
  const stopPodSandbox: typeof cri.runtime.stopPodSandbox = async ({ podSandboxId = "" }, options) => {
    stops.push([podSandboxId, scene.clock.nowMs - began]);
    if (podSandboxId === "hangs") await clock.sleep("a network plugin", 60_000, options?.signal);
    else await clock.sleep("a sandbox", 100);
    return create(pb.StopPodSandboxResponseSchema);
  };
  const stopper = scene.stopperOf({ ...cri, runtime: { ...cri.runtime, stopPodSandbox } });
  const sandboxes = ["a", "hangs", "b", "c"].map((id) => testSandbox({ id: sandboxId(id) }));
  const began = scene.clock.nowMs;
  const target = { ref, pod: scene.pod, graceSeconds: 30, cause };
  const remains = { containers: [], unstarted: [], sandboxes };
  await scene.finish(stopper.stopPod(target, remains, new AbortController().signal));
  assert.deepEqual(stops, [
    ["a", 0],
    ["hangs", 100],
    ["b", 1100],
    ["c", 1200],
  ]);
  assert.deepEqual(
    scene.entries.filter(({ kind }) => kind === "action").map(({ data }) => data?.["queuedMs"]),
    [0, 100, 1100, 1200],
  );
});

/** Kills, and again with what a worker would then give. Returns when the grace is over. */
async function killTwice(
  scene: Scene,
  graceSeconds: number,
  shorter: { readonly afterMs: number; readonly graceSeconds: number } | null,
): Promise<number> {
  const status = await scene.status();
  const began = scene.clock.nowMs;
  const killAtMs = began + graceSeconds * 1000;
  if (shorter === null) {
    await scene.finish(scene.kill(status, graceSeconds));
    return killAtMs;
  }
  const controller = new AbortController();
  const first = scene.kill(status, graceSeconds, controller.signal).catch(() => {});
  await scene.clock.run(began + shorter.afterMs);
  controller.abort(new Error("canceled"));
  await scene.finish(first);
  const again = await scene.status();
  const leftSeconds = Math.max(0, Math.min(shorter.graceSeconds, Math.ceil((killAtMs - scene.clock.nowMs) / 1000)));
  const secondMs = scene.clock.nowMs + leftSeconds * 1000;
  await scene.finish(scene.kill(again, leftSeconds));
  return Math.min(killAtMs, secondMs);
}

function judge(scene: Scene, name: string, hasHook: boolean, killAtMs: number): void {
  const [hooks, stops, ends] = [scene.times("hook", name), scene.times("stopping", name), scene.times("exited", name)];
  assert.ok(hooks.length <= (hasHook ? 1 : 0), `${name} ran its hook ${hooks.length} times`);
  assert.equal(ends.length, 1, `${name} has ended`);
  if (hooks[0] !== undefined) assert.ok(hooks[0] <= (stops[0] ?? 0), `${name} ran its hook after its stop signal`);
  for (const { timeoutMs, atMs } of scene.seen.filter((seen) => seen.what === "stopping" && seen.name === name)) {
    assert.ok(atMs + (timeoutMs ?? 0) >= killAtMs, `${name} is killed before the grace is over`);
  }
  // A canceled stop sends no SIGKILL: the last one counts.
  const latestMs = Math.max(killAtMs, scene.times("stopping", name).at(-1) ?? 0) + 3000 + callsMs;
  assert.ok((ends[0] ?? 0) <= latestMs, `${name} ended too late`);
}

/** A sidecar's stop signal comes after the ends of those before it, or when the grace is over. */
function judgeOrder(scene: Scene, scripts: readonly Script[], killAtMs: number): void {
  const regular = scripts.filter(({ sidecar }) => !sidecar);
  const sidecars = scripts.filter(({ sidecar }) => sidecar);
  for (const [index, { name }] of sidecars.entries()) {
    const stopped = scene.times("stopping", name)[0] ?? Number.POSITIVE_INFINITY;
    for (const before of [...regular, ...sidecars.slice(index + 1)]) {
      const ended = scene.times("exited", before.name)[0] ?? Number.POSITIVE_INFINITY;
      assert.ok(stopped >= ended || stopped >= killAtMs, `${name} was stopped before ${before.name} had ended`);
    }
  }
}
