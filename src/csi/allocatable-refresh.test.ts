import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { ManualClock, settle } from "../../test/support/manual-clock.ts";
import type { CsiDriver } from "../api/csi-node.ts";
import { Collection } from "../objects/collection.ts";
import { RpcError } from "../ports/rpc.ts";
import { silentLog } from "../sim/machine.ts";
import { AllocatableRefresh } from "./allocatable-refresh.ts";
import { CsiDriverObjects } from "./csi-driver-objects.ts";
import type { DriverOnNode } from "./csi-node-object.ts";
import { DriverStore } from "./driver-store.ts";

const { signal } = new AbortController();

/** A driver `d` with a place for so many volumes, and what of it was published. */
class Scene {
  readonly clock = new ManualClock();
  readonly published: bigint[] = [];
  places: bigint | RpcError = 1n;
  asks = 0;
  /** Its answers wait for this. */
  answers = Promise.resolve();
  readonly drivers = new DriverStore({
    clock: this.clock,
    called: () => {},
    plugins: { connect: () => this.#calls() as never },
  });
  readonly #all = new Collection<CsiDriver>();
  readonly refresh = new AllocatableRefresh({
    clock: this.clock,
    log: silentLog,
    drivers: this.drivers,
    objects: new CsiDriverObjects(this.clock, this.#all),
    update: async ({ maxVolumes }: DriverOnNode) => void this.published.push(maxVolumes),
  });

  async begin(): Promise<void> {
    await this.drivers.add("d", "/csi.sock", "1.0.0");
    this.refresh.start(signal);
  }

  period(seconds: number | undefined): void {
    const spec: CsiDriver["spec"] = { nodeAllocatableUpdatePeriodSeconds: seconds };
    this.#all.replaced([{ metadata: { name: "d" }, spec }]);
    this.refresh.sync();
  }

  #calls(): object {
    return {
      nodeGetInfo: async () => {
        this.asks++;
        await this.answers;
        if (this.places instanceof RpcError) throw this.places;
        return { nodeId: "n", maxVolumesPerNode: this.places };
      },
      [Symbol.dispose]: () => {},
    };
  }
}

let scene: Scene;
beforeEach(async () => {
  scene = new Scene();
  await scene.begin();
});

test("a driver's count is read in the period of its object, and no longer without one", async () => {
  await scene.clock.advance(60_000);
  assert.equal(scene.asks, 0);
  scene.period(30);
  await scene.clock.advance(60_000);
  scene.places = 2n;
  await scene.clock.advance(30_000);
  assert.deepEqual(scene.published, [1n, 1n, 2n]);
  scene.period(undefined);
  await scene.clock.advance(60_000);
  assert.equal(scene.asks, 3);
});

test("a failed query changes nothing, and the next one follows in time", async () => {
  scene.period(30);
  scene.places = new RpcError("Unavailable", "by command", { isStatus: true });
  await scene.clock.advance(30_000);
  scene.places = 3n;
  await scene.clock.advance(30_000);
  assert.deepEqual(scene.published, [3n]);
});

test("many pods that find the node full query the driver once", async () => {
  const answer = Promise.withResolvers<void>();
  scene.answers = answer.promise;
  const asked = ["a", "b", "c"].map(() => scene.refresh.ask("d"));
  await settle();
  answer.resolve();
  await Promise.all(asked);
  assert.equal(scene.asks, 1);
  await scene.refresh.ask("d");
  assert.equal(scene.asks, 2, "a later one is a new one");
});

test("an answer that comes after its registration has ended changes nothing", async () => {
  for (const again of [false, true]) {
    scene = new Scene();
    await scene.begin();
    const answer = Promise.withResolvers<void>();
    scene.answers = answer.promise;
    const asked = scene.refresh.ask("d");
    scene.drivers.remove("d");
    if (again) await scene.drivers.add("d", "/csi.sock", "1.0.0");
    answer.resolve();
    await asked;
    assert.deepEqual(scene.published, [], again ? "registered again" : "deregistered");
  }
});

test("a driver that registers again while it is queried is queried anew", async () => {
  const answer = Promise.withResolvers<void>();
  scene.answers = answer.promise;
  const earlier = scene.refresh.ask("d");
  await scene.drivers.add("d", "/csi.sock", "1.0.0");
  scene.answers = Promise.resolve();
  scene.places = 7n;
  await scene.refresh.ask("d");
  assert.deepEqual(scene.published, [7n]);
  answer.resolve();
  await earlier;
  assert.deepEqual(scene.published, [7n]);
});
