import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { deaf, podOf, runs, Scene } from "../../test/support/sim-scene.ts";
import { MemoryRecorder } from "../../test/support/sources.ts";
import type { Pod } from "../api/pod.ts";
import { podUid } from "../base/ids.ts";
import { why } from "../journal/explain.ts";
import { unwanted } from "../pods/ending.ts";
import type { EndingWorker } from "../pods/pod-termination.ts";
import type { WorkerState } from "../pods/worker-state.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { DriversLast } from "./drivers-last.ts";

const serves = ({ metadata }: Pod): boolean => metadata.name.startsWith("driver");
const cause = { code: "ManifestRemoved", message: "no longer desired" } as const;

function worker(name: string, state: WorkerState = { kind: "syncing" }): EndingWorker {
  const pod = podOf({ containers: [runs("c")] }, `uid-${name}`, name);
  return { uid: pod.metadata.uid, ref: podRef(pod), pod, forgotten: state.kind !== "syncing", state };
}

class Fixture {
  readonly clock = new ManualClock(0);
  readonly journal = new MemoryRecorder();
  readonly pods = new Set<string>();
  unstaging: string[] = [];
  readonly driver = worker("driver");
  workers = [this.driver];
  readonly #last = new DriversLast({
    clock: this.clock,
    journal: this.journal,
    serves,
    use: () => ({ pods: this.pods, unstaging: this.unstaging }),
  });

  constructor() {
    this.#last.connect({ workers: { list: () => this.workers } });
  }

  /** A pod with a CSI volume. */
  use(user: EndingWorker): void {
    this.workers = [...this.workers.filter(({ uid }) => uid !== user.uid), user];
    this.pods.add(user.uid);
  }

  ends(name: string, killAtMs = 30_000): void {
    this.use(worker(name, { kind: "terminating", ending: unwanted(cause, 30), killAtMs }));
  }

  until(graceSeconds = 30, of = this.driver): number | undefined {
    return this.#last.holdsStop(of, unwanted(cause, graceSeconds));
  }

  served(of = this.driver): string[] {
    return of.pod === undefined ? [] : this.#last.served(of.pod).map(({ name }) => name);
  }

  told(): string[] {
    return this.journal.entries.map(({ what, message }) => `${what}: ${message}`);
  }
}

const first = (users: string): string =>
  `DriverStopsFirst: the driver is stopped before its users: ${users}; it has to run again to release their volumes`;

test("a driver is stopped once pods that end have released their volumes, and these are unstaged", async () => {
  const fixture = new Fixture();
  fixture.ends("web");
  assert.equal(fixture.until(), 200);
  await fixture.clock.advance(200);
  assert.equal(fixture.until(), 400);
  fixture.pods.clear();
  fixture.unstaging = ["disk"];
  assert.equal(fixture.until(), 400);
  fixture.unstaging = [];
  assert.equal(fixture.until(), undefined);
  // Later users find it ending already.
  fixture.ends("late");
  assert.equal(fixture.until(), undefined);
  assert.deepEqual(fixture.told(), [
    "DriverWaits: the driver is stopped after its users: pod default/web",
    "DriverWaits: the driver is stopped after its users: volume disk",
  ]);
});

test("the wait ends two minutes after the users' grace periods, and soon if it is to stop immediately", async () => {
  const fixture = new Fixture();
  fixture.ends("web", 60_000);
  assert.equal(fixture.until(), 200);
  await fixture.clock.advance(179_900);
  assert.equal(fixture.until(), 180_000);
  await fixture.clock.advance(100);
  assert.equal(fixture.until(), undefined);
  assert.equal(fixture.told().at(-1), first("pod default/web"));

  const hurried = new Fixture();
  hurried.ends("web", 60_000);
  assert.equal(hurried.until(), 200);
  await hurried.clock.advance(1000);
  assert.equal(hurried.until(0), 1200);
  await hurried.clock.advance(3000);
  assert.equal(hurried.until(0), undefined);
});

test("a driver that is stopped before its users waits only for those whose stop comes at the same time", async () => {
  const fixture = new Fixture();
  fixture.use(worker("web"));
  assert.deepEqual(fixture.served(), ["web"]);
  assert.deepEqual(fixture.served(worker("other")), []);
  assert.equal(fixture.until(), 200);
  assert.deepEqual(fixture.told(), []);
  await fixture.clock.advance(1000);
  assert.equal(fixture.until(), undefined);
  assert.deepEqual(fixture.told(), [first("pod default/web")]);
  const together = new Fixture();
  together.use(worker("web"));
  assert.equal(together.until(), 200);
  together.ends("web");
  await together.clock.advance(1000);
  assert.equal(together.until(), 1200);
  assert.deepEqual(together.served(), []);
});

test("only drivers wait, and not for each other", () => {
  const fixture = new Fixture();
  fixture.ends("driver-b");
  fixture.ends("web");
  assert.equal(fixture.until(30, worker("other")), undefined);
  fixture.pods.delete("uid-web");
  assert.equal(fixture.until(), undefined);
});

test("a simulated driver has its whole grace period after the wait, and a kill of podwright does not end the wait", async () => {
  const inUse = new Set(["uid-web"]);
  const released = (uid: string): void => void inUse.delete(uid);
  const scene = new Scene({}, undefined, ({ ports: { clock }, record }) => {
    const use = (): { pods: Set<string>; unstaging: string[] } => ({ pods: inUse, unstaging: [] });
    return [new DriversLast({ clock, journal: { record }, serves, use }), { released, remove: released }];
  });
  const spec = (name: string, terminationGracePeriodSeconds: number) => {
    return { terminationGracePeriodSeconds, containers: [deaf(name)] };
  };
  scene.node.add(podOf(spec("server", 5), "uid-driver", "driver"));
  scene.node.add(podOf(spec("app", 20), "uid-web"));
  await scene.pass(10_000);
  const stoppedMs = scene.clock.nowMs;
  for (const uid of ["uid-driver", "uid-web"]) scene.node.remove(uid);
  await scene.pass(2000);
  const [shown] = why(scene.node.entries, { uid: podUid("uid-driver") })?.subjects ?? [];
  assert.equal(shown?.last.message, "the driver is stopped after its users: pod default/web");
  scene.node.kill();
  scene.node.start();
  await scene.pass(60_000);
  const [app = 0] = scene.at("exited app").map((ms) => ms - stoppedMs);
  const [server = 0] = scene.at("exited server").map((ms) => ms - stoppedMs);
  assert.ok(app >= 20_000, `the app ended after ${app} ms`);
  assert.ok(server >= app + 5000 && server < app + 9000, `the driver after ${server} ms, the app after ${app} ms`);
  assert.deepEqual(scene.node.pods(), []);
});
