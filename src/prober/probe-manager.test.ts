import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { port, ProbeWorld as World, wallStart } from "../../test/support/probe-world.ts";
import { testContainer, testPod, testSandbox, testStatus } from "../../test/support/observed.ts";
import type { PodStatus as ApiPodStatus } from "../api/status.ts";
import type { Container } from "../api/container.ts";
import { containerId, podUid } from "../base/ids.ts";
import { eventsOf } from "../events/entry-events.ts";
import type { Cause, JournalEntry } from "../journal/entry.ts";

function chain(cause: Cause | undefined): string[] {
  return cause === undefined ? [] : [cause.message, ...chain(cause.because)];
}

describe("a readiness probe", () => {
  const container = { readinessProbe: { ...port(1), periodSeconds: 5 } };

  test("probes at once and every period, and decides whether the container is ready", async () => {
    const world = new World();
    world.network.down.add(1);
    world.see(container);
    assert.equal(world.state(container).ready, false);
    await world.clock.advance(6000);
    world.network.down.clear();
    await world.clock.advance(5000);
    assert.deepEqual(world.network.probes, ["1 at 0", "1 at 5000", "1 at 10000"]);
    assert.equal(world.state(container).ready, true);
    assert.deepEqual(world.changes, ["c readiness success"]);
  });

  test("is not ready after the third consecutive failure only, and kills nothing", async () => {
    const world = new World();
    world.see(container);
    await world.clock.advance(1);
    world.network.down.add(1);
    await world.clock.advance(10_000);
    assert.equal(world.state(container).ready, true);
    await world.clock.advance(5000);
    assert.equal(world.state(container).ready, false);
    assert.equal(world.state(container).unhealthy, undefined);
  });

  test("needs as many successes as its threshold", async () => {
    const world = new World();
    const strict = { readinessProbe: { ...container.readinessProbe, successThreshold: 2 } };
    world.see(strict);
    await world.clock.advance(1);
    assert.equal(world.state(strict).ready, false);
    await world.clock.advance(5000);
    assert.equal(world.state(strict).ready, true);
  });

  test("continues while the pod is being stopped, until the container has exited", async () => {
    const world = new World();
    world.see(container);
    world.see(container, {}, { ending: true });
    await world.clock.advance(5001);
    assert.equal(world.network.probes.length, 2);
    world.see(container, { state: "exited" }, { ending: true });
    await world.clock.advance(60_000);
    assert.equal(world.network.probes.length, 2);
    assert.deepEqual(world.clock.waits, []);
  });

  test("waits for its initial delay, counted from the container's start", async () => {
    const world = new World();
    const late = { readinessProbe: { ...container.readinessProbe, initialDelaySeconds: 10 } };
    await world.clock.advance(60_000);
    world.see(late, {}, { agoMs: 3000 });
    await world.clock.advance(7000);
    assert.deepEqual(world.network.probes, ["1 at 67000"]);
  });
});

describe("a probe that is redirected to another host", () => {
  test("succeeds, with a warning", async () => {
    const world = new World();
    const body = Buffer.from('<a href="http://0.0.0.0/">Found</a>.\n\n');
    world.network.httpGet = async () => ({ status: 302, redirectedTo: "0.0.0.0", body });
    const container = { readinessProbe: { httpGet: { port: 80 } } };
    world.see(container);
    await world.clock.advance(1);
    assert.equal(world.state(container).ready, true);
    const [warning] = world.entries;
    assert.equal(warning?.what, "ProbeWarning");
    assert.match(warning.message, /Probe terminated redirects to 0\.0\.0\.0 \(HTTP status 302\): <a .*Found<\/a>\.$/);
    const events = eventsOf(warning as JournalEntry);
    assert.deepEqual(
      events.map(({ type, reason, message }) => [type, reason, message]),
      [
        [
          "Warning",
          "ProbeWarning",
          'Readiness probe warning: Probe terminated redirects, Response body: <a href="http://0.0.0.0/">Found</a>.',
        ],
      ],
    );
  });
});

describe("a liveness probe", () => {
  const container = { livenessProbe: { ...port(2), periodSeconds: 1, timeoutSeconds: 1 } };

  test("fails the container after the third consecutive failure, and reports why", async () => {
    const world = new World();
    world.see(container);
    await world.clock.advance(1);
    world.network.hanging.add(2);
    await world.clock.advance(2500);
    assert.equal(world.state(container).unhealthy, undefined);
    world.network.hanging.clear();
    world.network.down.add(2);
    await world.clock.advance(3000);
    const { unhealthy } = world.state(container);
    assert.deepEqual(chain(unhealthy?.cause), [
      "liveness probe failed 3/3 (TCP :2: connection refused)",
      "liveness probe failed 2/3 (TCP :2: no response in 1 s)",
    ]);
    assert.deepEqual(world.changes, ["c liveness failure"]);
  });

  test("names the journal entry of the last failure", async () => {
    const world = new World();
    world.network.down.add(2);
    world.see(container);
    await world.clock.advance(3000);
    const cause = world.state(container).unhealthy?.cause;
    assert.equal(cause?.code, "LivenessProbeFailed");
    const entry = world.entries[(cause.entry ?? 0) - 1];
    assert.equal(entry?.what, "Unhealthy");
    assert.equal(entry.message, "liveness probe failed 3/3 (TCP :2: connection refused)");
    const eventMessage = "Liveness probe failed: connection refused (3/3, TCP :2)";
    assert.deepEqual(entry.data, { probe: "liveness", output: "connection refused", lateMs: 0, eventMessage });
  });

  test("pauses after its verdict until another instance runs, which starts fresh", async () => {
    const world = new World();
    world.network.down.add(2);
    world.see(container);
    await world.clock.advance(30_000);
    assert.equal(world.network.probes.length, 3);
    world.see(container, { state: "exited" });
    world.see(container, { id: containerId("c-1") });
    await world.clock.advance(1);
    assert.equal(world.network.probes.length, 4);
    assert.equal(world.state(container, "c-1").unhealthy, undefined);
    assert.equal(world.state(container, "c-0").unhealthy, undefined);
    await world.clock.advance(2000);
    assert.notEqual(world.state(container, "c-1").unhealthy, undefined);
  });

  test("passes on its own grace period", async () => {
    const world = new World();
    const own = {
      livenessProbe: { ...container.livenessProbe, failureThreshold: 1, terminationGracePeriodSeconds: 7 },
    };
    world.network.down.add(2);
    world.see(own);
    await world.clock.advance(1);
    assert.equal(world.state(own).unhealthy?.graceSeconds, 7);
  });

  test("ends with the pod", async () => {
    const world = new World();
    world.see(container);
    await world.clock.advance(1);
    world.see(container, {}, { ending: true });
    await world.clock.advance(10_000);
    assert.equal(world.network.probes.length, 1);
  });

  test("that is impossible gives no verdict", async () => {
    const world = new World();
    const broken = { livenessProbe: { tcpSocket: { port: "nowhere" }, periodSeconds: 1 } };
    world.see(broken);
    await world.clock.advance(10_000);
    assert.equal(world.state(broken).unhealthy, undefined);
    assert.match(world.entries[0]?.message ?? "", /liveness probe errored: .*no port named "nowhere"/);
    const told = JSON.stringify(world.entries[0]?.data?.["eventMessage"]);
    assert.match(told, /^"Liveness probe errored and resulted in unknown state: .*no port named .*nowhere/);
  });
});

describe("a startup probe", () => {
  const container = {
    startupProbe: { ...port(3), periodSeconds: 1, failureThreshold: 30 },
    livenessProbe: { ...port(2), periodSeconds: 1 },
    readinessProbe: { ...port(1), periodSeconds: 1 },
  };

  test("precedes the others and ends once it has succeeded; they follow at once", async () => {
    const world = new World();
    world.network.down.add(3);
    world.see(container);
    await world.clock.advance(2500);
    assert.deepEqual(world.network.probes, ["3 at 0", "3 at 1000", "3 at 2000"]);
    assert.deepEqual(world.state(container), { ready: false, started: false, unhealthy: undefined });
    world.network.down.clear();
    await world.clock.advance(1000);
    assert.deepEqual(world.network.probes.slice(3), ["3 at 3000", "2 at 3000", "1 at 3000"]);
    assert.deepEqual(world.state(container), { ready: true, started: true, unhealthy: undefined });
    await world.clock.advance(1000);
    assert.deepEqual(world.network.probes.slice(6), ["2 at 4000", "1 at 4000"]);
  });

  test("that fails too often fails the container", async () => {
    const world = new World();
    const impatient = { ...container, startupProbe: { ...container.startupProbe, failureThreshold: 2 } };
    world.network.down.add(3);
    world.see(impatient);
    await world.clock.advance(10_000);
    assert.equal(world.network.probes.length, 2);
    const cause = world.state(impatient).unhealthy?.cause;
    assert.equal(cause?.code, "StartupProbeFailed");
  });
});

describe("sidecars and others", () => {
  const probe = { readinessProbe: { ...port(1), periodSeconds: 1 } };

  test("sidecars are probed; other init containers and ephemeral ones are not", async () => {
    const world = new World();
    const initContainers: Container[] = [
      { name: "sidecar", image: "busybox", restartPolicy: "Always", readinessProbe: port(10) },
      { name: "init", image: "busybox", readinessProbe: port(11) },
    ];
    const pod = testPod({ initContainers, ephemeralContainers: [{ name: "debug", image: "busybox", ...probe }] });
    const running = ["sidecar", "init", "debug"].map((name) =>
      testContainer({ name, startedAt: BigInt(wallStart) * 1_000_000n }),
    );
    world.manager.observe(pod, testStatus([testSandbox()], running), false);
    await world.clock.advance(1);
    assert.deepEqual(world.network.probes, ["10 at 0"]);
  });

  test("a container without probes is started and has no probe state", () => {
    const world = new World();
    world.see({});
    assert.deepEqual(world.state({}), { ready: undefined, started: undefined, unhealthy: undefined });
    assert.equal(world.manager.hasStarted({ name: "c", image: "busybox" }, testContainer()), true);
  });

  test("a probe that hangs delays no other", async () => {
    const world = new World();
    const two = { readinessProbe: { ...port(1), periodSeconds: 1 }, livenessProbe: { ...port(2), timeoutSeconds: 60 } };
    world.network.hanging.add(2);
    world.see(two);
    await world.clock.advance(3000);
    assert.deepEqual(
      world.network.probes.filter((probed) => probed.startsWith("1 ")),
      ["1 at 0", "1 at 1000", "1 at 2000", "1 at 3000"],
    );
  });

  test("a removed pod leaves no wait, no result and no probe in progress", async () => {
    const world = new World();
    world.network.hanging.add(1);
    world.see(probe);
    await world.clock.advance(1);
    assert.deepEqual(world.manager.activity, { workers: 1, probing: 1 });
    world.manager.remove(podUid("uid-1"));
    await world.clock.advance(10);
    assert.deepEqual(world.manager.activity, { workers: 0, probing: 0 });
    assert.deepEqual(world.clock.waits, []);
  });
});

describe("a restart of podwright", () => {
  const container = {
    startupProbe: { ...port(3), periodSeconds: 10 },
    readinessProbe: { ...port(1), periodSeconds: 10 },
  };

  async function restarted(before: (world: World) => void, agoMs = 600_000): Promise<World> {
    const first = new World();
    await first.manager.load();
    before(first);
    first.see(container, {}, { agoMs });
    await first.clock.advance(61_000);
    await first.manager.close();
    const second = new World(first.files);
    await second.manager.load();
    second.see(container, {}, { agoMs });
    return second;
  }

  test("leaves a ready container ready, and probes it within a period", async () => {
    const world = await restarted(() => {});
    assert.deepEqual(world.state(container), { ready: true, started: true, unhealthy: undefined });
    await world.clock.advance(5000);
    assert.deepEqual(world.network.probes, ["1 at 5000"]);
  });

  test("makes a container unready only for failed probes", async () => {
    const world = await restarted(() => {});
    world.network.down.add(1);
    await world.clock.advance(20_000);
    assert.equal(world.state(container).ready, true);
    await world.clock.advance(10_000);
    assert.equal(world.state(container).ready, false);
  });

  test("makes no unready container ready", async () => {
    const world = await restarted((first) => first.network.down.add(1));
    assert.deepEqual(world.state(container), { ready: false, started: true, unhealthy: undefined });
  });

  test("does not apply one instance's result to another", async () => {
    const world = await restarted(() => {});
    world.see(container, { id: containerId("c-1") });
    assert.equal(world.state(container, "c-1").ready, false);
  });

  test("survives a corrupt file", async () => {
    for (const text of ["", "{", "[]", '{"pods":{"uid-1":{"c-0":{"ready":"yes"}}}}', '{"pods":{"uid-1":7}}']) {
      const world = new World();
      await world.files.makeDirectory("/var/lib/kubelet/podwright", 0o700);
      await world.files.writeAtomic("/var/lib/kubelet/podwright/probes.json", text, 0o600);
      await world.manager.load();
      world.see(container);
      assert.deepEqual(world.state(container), { ready: false, started: false, unhealthy: undefined });
    }
  });
});

test("a node that switches from another kubelet keeps the readiness that the API server has of running instances", async () => {
  const container = { startupProbe: port(3), readinessProbe: { ...port(1), periodSeconds: 10 } };
  const told = (ready: boolean, id = "c-0"): ApiPodStatus => ({
    phase: "Running",
    containerStatuses: [
      {
        ...{
          name: "c",
          image: "busybox",
          imageID: "",
          restartCount: 0,
          state: { running: { startedAt: null } },
          lastState: {},
        },
        ...{ ready, started: true, containerID: `containerd://${id}` },
      },
    ],
  });
  const taken = (said: ApiPodStatus): World => {
    const world = new World();
    world.said = said;
    world.see(container, {}, { agoMs: 600_000 });
    return world;
  };
  const world = taken(told(true));
  assert.deepEqual(world.state(container), { ready: true, started: true, unhealthy: undefined });
  world.network.down.add(1);
  await world.clock.advance(31_000);
  assert.equal(world.state(container).ready, false);
  assert.deepEqual(taken(told(false)).state(container), { ready: false, started: true, unhealthy: undefined });
  assert.equal(taken(told(true, "c-1")).state(container).ready, false);
  const first = new World();
  await first.manager.load();
  first.said = told(true);
  first.see(container, {}, { agoMs: 600_000 });
  await first.clock.advance(1_000);
  await first.manager.close();
  const next = new World(first.files);
  await next.manager.load();
  next.see(container, {}, { agoMs: 600_000 });
  assert.deepEqual(next.state(container), { ready: true, started: true, unhealthy: undefined }, "without the server");
});

test("late probes are mentioned in the cause, once it matters", async () => {
  const world = new World();
  const container = { livenessProbe: { ...port(2), periodSeconds: 1, failureThreshold: 1 } };
  world.network.down.add(2);
  const monotonic = world.clock.monotonic.bind(world.clock);
  world.see(container);
  world.clock.monotonic = () => monotonic() + 800;
  await world.clock.advance(1);
  assert.deepEqual(chain(world.state(container).unhealthy?.cause), [
    "liveness probe failed 1/1 (TCP :2: connection refused)",
    "podwright was busy: these probes were up to 0.8 s late",
  ]);
});
