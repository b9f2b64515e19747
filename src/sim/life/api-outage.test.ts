import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "../../api/pod.ts";
import { withDefaults } from "../../sources/defaults.ts";
import { fieldsAt, listAt } from "../api-server/values.ts";
import { behaviourCommand } from "../behaviour.ts";
import { SimClock } from "../clock.ts";
import { SimRandom } from "../random.ts";
import { RuntimeWorld } from "../runtime-world.ts";
import { nameOf, type WorldChange } from "../world-model.ts";
import { asStatic, SimCluster } from "./cluster.ts";
import { conditionOf } from "./node-controller.ts";
import { SimNode } from "./node.ts";
import { MemoryFiles } from "../files.ts";
import { drawApiPod } from "./pod-references.ts";

const minuteMs = 60_000;

/** A node of a cluster on which nothing goes wrong by itself. */
class World {
  readonly clock = new SimClock(1_700_000_000_000);
  readonly runtime: RuntimeWorld;
  readonly cluster: SimCluster;
  readonly node: SimNode;
  readonly changes: WorldChange[] = [];
  readonly deletions: string[] = [];

  constructor() {
    const files = new MemoryFiles(this.clock.incarnation());
    this.runtime = new RuntimeWorld(this.clock, files);
    this.runtime.images.add("busybox:latest");
    const settings = { clock: this.clock, skewMs: 0, streamsLists: true, pageSize: 500 };
    this.cluster = new SimCluster(settings, new SimRandom(1));
    const { clock, runtime: world, cluster } = this;
    this.node = new SimNode({ clock, world, cluster, files, random: new SimRandom(2) });
    world.onChange((change) => this.changes.push(change));
    cluster.server.registry.store.onChange(({ resource, after, last }) => {
      if (resource === "pods" && after === undefined) this.deletions.push(last.key);
    });
  }

  async pass(forMs: number): Promise<void> {
    await this.clock.run(this.clock.nowMs + forMs);
  }

  /** Ends a pod's container, as a crash does. */
  crash(uid: string): void {
    const container = this.runtime.running(uid, "main");
    assert.ok(container, `${uid} runs`);
    this.runtime.exit(container, 1, "Error");
  }

  runs(uid: string): boolean {
    return this.runtime.running(uid, "main") !== undefined;
  }

  /** What the server says of a pod: its phase, readiness, and its container's restarts. */
  told(uid: string): readonly unknown[] {
    const { value } = this.cluster.pod(uid) ?? this.cluster.mirrors()[0] ?? {};
    assert.ok(value, `the server has ${uid}`);
    const status = fieldsAt(value, "status");
    const [container] = listAt(status, "containerStatuses");
    return [status["phase"], conditionOf(value, "Ready"), container?.["restartCount"]];
  }

  /** Whether the server's Node is ready. */
  get nodeReady(): unknown {
    const [node] = this.cluster.server.registry.store.list("nodes");
    return node && conditionOf(node.value, "Ready");
  }

  /** What was stopped by somebody since then. */
  stopped(since: number): string[] {
    const stops = this.changes.slice(since).filter(({ type }) => type === "stopping" || type === "sandboxStopped");
    return stops.map(({ podUid, container }) => `${podUid}/${container === undefined ? "sandbox" : nameOf(container)}`);
  }
}

function pod(name: string): Pod {
  const command = behaviourCommand({ exitAfterMs: undefined, exitCode: 0, deaf: false, unstartable: false });
  const manifest = withDefaults({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "default" },
    spec: { containers: [{ name: "main", image: "busybox", command }] },
  });
  return { metadata: { name, namespace: "default", uid: `uid-${name}` }, spec: manifest.spec };
}

/** With a token of its service account that expires during an outage. */
function podWithToken(name: string): Pod {
  for (let seed = 1; ; seed++) {
    const drawn = drawApiPod(pod(name), new SimRandom(seed));
    if (drawn.spec.volumes?.some(({ projected }) => projected !== undefined) === true) return drawn;
  }
}

async function started(): Promise<World> {
  const world = new World();
  world.cluster.want(pod("calm"));
  world.cluster.want(podWithToken("crashes"));
  world.cluster.want(pod("deleted"));
  world.node.start();
  await world.pass(minuteMs);
  for (const uid of ["uid-calm", "uid-crashes", "uid-deleted"]) {
    assert.deepEqual(world.told(uid), ["Running", "True", 0], uid);
  }
  assert.equal(world.nodeReady, "True");
  return world;
}

for (const how of ["refuses", "silent"] as const) {
  test(`while the API server is away (${how}) for ten minutes pods run on and are restarted, static ones start, and all is told after`, async () => {
    const world = await started();
    const { cluster, node } = world;
    const since = world.changes.length;
    cluster.server.goDown(how);
    await world.pass(minuteMs);
    world.crash("uid-crashes");
    cluster.want(asStatic(pod("late")));
    node.staticsChanged();
    await world.pass(minuteMs);
    assert.ok(world.runs("uid-crashes"), "a crashed container was restarted");
    assert.ok(world.runs("uid-late"), "a static pod was started");
    await world.pass(8 * minuteMs);
    assert.deepEqual(world.stopped(since), []);
    cluster.server.comeUp(true);
    await world.pass(minuteMs);
    assert.deepEqual(world.told("uid-calm"), ["Running", "True", 0]);
    assert.deepEqual(world.told("uid-crashes"), ["Running", "True", 1]);
    assert.deepEqual(world.told("uid-late"), ["Running", "True", 0], "by its mirror pod");
    assert.equal(world.nodeReady, "True");
    assert.deepEqual(world.deletions, []);
    assert.deepEqual(world.stopped(since), []);
  });
}

test("podwright that is started anew while the API server is away disturbs nothing and goes on when that is back", async () => {
  const world = await started();
  const { cluster, node } = world;
  const since = world.changes.length;
  cluster.server.goDown("refuses");
  await world.pass(minuteMs);
  node.kill();
  await world.pass(5000);
  node.start();
  await world.pass(2 * minuteMs);
  for (const uid of ["uid-calm", "uid-crashes", "uid-deleted"]) assert.ok(world.runs(uid), uid);
  world.crash("uid-crashes");
  await world.pass(minuteMs);
  assert.ok(world.runs("uid-crashes"), "a crashed container was restarted without the API server");
  cluster.want(asStatic(pod("late")));
  node.staticsChanged();
  await world.pass(minuteMs);
  assert.ok(world.runs("uid-late"), "a static pod was started");
  cluster.delete("uid-deleted");
  await world.pass(5 * minuteMs);
  assert.deepEqual(world.stopped(since), [], "nobody has told the node");
  cluster.server.comeUp(false);
  await world.pass(2 * minuteMs);
  assert.deepEqual(world.told("uid-calm"), ["Running", "True", 0]);
  assert.deepEqual(world.told("uid-late"), ["Running", "True", 0], "by its mirror pod");
  assert.deepEqual([...new Set(world.stopped(since))], ["uid-deleted/main", "uid-deleted/sandbox"]);
  assert.deepEqual(world.deletions, ["default/deleted"]);
  assert.equal(world.nodeReady, "True");
});

test("a restore of the API server's store is noticed: what it undid is undone here, and what comes then is seen", async () => {
  const world = await started();
  const { cluster } = world;
  const { store } = cluster.server.registry;
  const backup = store.backup();
  cluster.delete("uid-deleted");
  cluster.want(pod("undone"));
  await world.pass(2 * minuteMs);
  assert.ok(world.runs("uid-undone") && !world.runs("uid-deleted"));
  const since = world.changes.length;
  cluster.server.goDown("refuses");
  store.restore(backup);
  await world.pass(5000);
  cluster.server.comeUp(false);
  cluster.want(pod("new"));
  await world.pass(minuteMs);
  assert.deepEqual(
    ["calm", "crashes", "new", "deleted", "undone"].map((name) => world.runs(`uid-${name}`)),
    [true, true, true, true, false],
  );
  assert.deepEqual(world.told("uid-new"), ["Running", "True", 0]);
  assert.deepEqual([...new Set(world.stopped(since))], ["uid-undone/main", "uid-undone/sandbox"]);
  assert.equal(world.nodeReady, "True");
});

test("a pod that the API server knows as ended runs never again, also when the runtime has nothing of it any more", async () => {
  const world = await started();
  const command = behaviourCommand({ exitAfterMs: 1000, exitCode: 0, deaf: false, unstartable: false });
  const { metadata, spec } = pod("over");
  const containers = spec.containers.map((container) => ({ ...container, command }));
  world.cluster.want({ metadata, spec: { ...spec, restartPolicy: "Never", containers } });
  await world.pass(minuteMs);
  const ended = ["Succeeded", "False", 0];
  assert.deepEqual(world.told("uid-over"), ended);
  world.node.kill();
  for (const { id, config } of world.runtime.sandboxes.values()) {
    if (config.metadata?.uid === "uid-over") world.runtime.removeSandbox(id);
  }
  const since = world.changes.length;
  world.node.start();
  await world.pass(2 * minuteMs);
  const made = world.changes.slice(since).filter(({ type, podUid }) => type === "created" && podUid === "uid-over");
  assert.deepEqual(made, []);
  assert.deepEqual(world.told("uid-over"), ended);
});
