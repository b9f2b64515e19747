import assert from "node:assert/strict";
import { test } from "node:test";
import { csiSpec } from "../../test/support/csi-scene.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { podWith } from "../../test/support/pods.ts";
import { Emitter } from "../base/emitter.ts";
import { silentLog } from "../sim/machine.ts";
import { StorageWaits } from "./storage-waits.ts";
import { SetUpCanceled } from "./pod-set-up.ts";
import { VolumePaths } from "./volume-paths.ts";
import { VolumeUpkeeps } from "./volume-upkeeps.ts";
import { volumeUse } from "./volume-use.ts";

/** Upkeep of a pod's volume that is always due, and lasts as long as the call does. */
class Scene {
  readonly clock = new ManualClock();
  readonly told: string[] = [];
  readonly call = Promise.withResolvers<void>();
  readonly signals: AbortSignal[] = [];
  readonly upkeeps: VolumeUpkeeps;
  readonly pod = podWith({ containers: [{ name: "app" }] });

  constructor() {
    const { clock, told, signals } = this;
    const upkeep = { name: "publication", isDue: () => true, run: async () => {} };
    this.upkeeps = new VolumeUpkeeps(
      {
        log: silentLog,
        waits: new StorageWaits(clock, { record: ({ message }) => told.push(message ?? "") }, silentLog),
      },
      {
        upkeepsOf: async () => [upkeep],
        keepUp: async (_kept, _volume, _upkeep, signal) => {
          signals.push(signal);
          await this.call.promise;
        },
      },
    );
  }

  async begin(): Promise<void> {
    const { pod, upkeeps, clock } = this;
    const [volume, empty] = [{ name: "v" }, () => new Map<string, never>()];
    const memory = {
      specs: new Map([["v", csiSpec()]]),
      ...{ upkeeps: empty(), contents: empty(), wanted: empty(), remarks: empty(), retries: new Emitter() },
    };
    const paths = new VolumePaths("/kubelet", pod.metadata.uid);
    upkeeps.begin({ pod, use: volumeUse(pod), paths, memory }, [volume]);
    await clock.advance(0);
  }

  get aborted(): readonly boolean[] {
    return this.signals.map(({ aborted }) => aborted);
  }
}

test("upkeep that does not end while its pod's volumes wait to be removed is named", async () => {
  const scene = new Scene();
  const { clock, told, upkeeps, pod } = scene;
  await scene.begin();
  await clock.advance(60_000);
  assert.deepEqual(told, []);
  let hasEnded = false;
  const stopped = upkeeps.stop(pod.metadata.uid).then(() => (hasEnded = true));
  assert.deepEqual(scene.aborted, [true]);
  await clock.advance(30_000);
  assert.deepEqual(
    [hasEnded, told],
    [false, ["volume pv (d) does not answer: its upkeep has not returned within 30 s"]],
  );
  scene.call.resolve();
  await stopped;
  assert.equal(told.length, 2);
  assert.deepEqual(clock.waits, []);
});

test("once upkeep is canceled its outcome is unknown, and no other begins", async () => {
  const scene = new Scene();
  const { upkeeps, signals } = scene;
  await scene.begin();
  upkeeps.cancel(new SetUpCanceled("podwright is stopping"));
  const reason: unknown = signals[0]?.reason;
  assert.ok(reason instanceof Error);
  assert.deepEqual([reason.name, reason.message], ["AbortError", "podwright is stopping"]);
  scene.call.resolve();
  await upkeeps.close();
  await scene.begin();
  assert.deepEqual(scene.aborted, [true]);
});
