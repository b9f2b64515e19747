import assert from "node:assert/strict";
import { test } from "node:test";
import { csiSpec } from "../../test/support/csi-scene.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { podWith } from "../../test/support/pods.ts";
import { Emitter } from "../base/emitter.ts";
import { silentLog } from "../sim/machine.ts";
import { StorageWaits } from "./storage-waits.ts";
import { VolumePaths } from "./volume-paths.ts";
import type { KeptPod } from "./volume-set-up.ts";
import { VolumeUpkeeps } from "./volume-upkeeps.ts";
import { volumeUse } from "./volume-use.ts";

test("upkeep that does not end while its pod's volumes wait to be removed is named", async () => {
  const clock = new ManualClock();
  const told: string[] = [];
  const waits = new StorageWaits(clock, { record: ({ message }) => told.push(message ?? "") }, silentLog);
  const call = Promise.withResolvers<void>();
  const signals: AbortSignal[] = [];
  const upkeep = { name: "publication", isDue: () => true, run: async () => {} };
  const upkeeps = new VolumeUpkeeps(
    { log: silentLog, waits },
    {
      upkeepsOf: async () => [upkeep],
      keepUp: async (_kept, _volume, _upkeep, signal) => {
        signals.push(signal);
        await call.promise;
      },
    },
  );
  const pod = podWith({ containers: [{ name: "app" }] });
  const { uid } = pod.metadata;
  const [volume, empty] = [{ name: "v" }, () => new Map<string, never>()];
  const memory = {
    specs: new Map([["v", csiSpec()]]),
    ...{ upkeeps: empty(), contents: empty(), wanted: empty(), remarks: empty(), retries: new Emitter() },
  };
  const kept: KeptPod = { pod, use: volumeUse(pod), paths: new VolumePaths("/kubelet", uid), memory };
  upkeeps.begin(kept, [volume]);
  await clock.advance(60_000);
  assert.deepEqual(told, []);
  let hasEnded = false;
  const stopped = upkeeps.stop(uid).then(() => (hasEnded = true));
  assert.deepEqual(
    signals.map(({ aborted }) => aborted),
    [true],
  );
  await clock.advance(30_000);
  assert.deepEqual(
    [hasEnded, told],
    [false, ["volume pv (d) does not answer: its upkeep has not returned within 30 s"]],
  );
  call.resolve();
  await stopped;
  assert.equal(told.length, 2);
  assert.deepEqual(clock.waits, []);
});
