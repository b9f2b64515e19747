import assert from "node:assert/strict";
import { test } from "node:test";
import { CsiScene, csiSpec } from "../../test/support/csi-scene.ts";
import { podWith } from "../../test/support/pods.ts";
import { Emitter } from "../base/emitter.ts";
import { attachProblem } from "../volumes/kept-attachment.ts";
import type { AttachedVolume, KeptAttachment, PreparedVolume } from "../volumes/volume-plugin.ts";

const { signal } = new AbortController();
const spec = csiSpec();

async function scene(): Promise<CsiScene> {
  const begun = new CsiScene();
  await begun.begin();
  return begun;
}

function begin(volume: PreparedVolume, attachment: KeptAttachment): Promise<void> {
  const [upkeep] = volume.upkeeps ?? [];
  assert.ok(upkeep);
  return upkeep.run(signal, attachment, new Emitter());
}

const podOfVolume = podWith({ containers: [{ name: "app" }] });

function attachedAs(device: string): AttachedVolume {
  return { attachmentName: "a", metadata: { device } };
}

/** Messages of failures, and of successes their names. */
function tries({ entries }: CsiScene): string[] {
  return entries.flatMap((entry) => {
    if (entry.kind !== "outcome" || entry.what !== "RepublishVolume") return [];
    return [entry.result === "done" ? "done" : entry.message];
  });
}

function contexts({ calls }: CsiScene): unknown[] {
  return calls.filter(({ method }) => method === "nodePublishVolume").map(({ request }) => request["publishContext"]);
}

test("a published volume that is not attached is a failed try, and is published as it is attached then", async () => {
  const now = await scene();
  const volume = now.prepare(podOfVolume, spec);
  await volume.setUp(signal, attachedAs("old"));
  let problem: Error | undefined = new Error("volume attachment is being deleted");
  const attachment: KeptAttachment = {
    wait: () => assert.fail("a published volume does not wait for the Node's lists"),
    look: async () => {
      if (problem !== undefined) throw attachProblem(spec, problem);
      return attachedAs("new");
    },
  };
  const ended = begin(volume, attachment);
  await now.clock.advance(0);
  await now.clock.advance(500);
  const failed = 'MountVolume.WaitForAttach failed for volume "pv" : volume attachment is being deleted';
  assert.deepEqual(tries(now), [failed, failed]);
  problem = undefined;
  await now.clock.advance(999);
  assert.equal(tries(now).length, 2, "it backs off");
  await now.clock.advance(1);
  await ended;
  assert.deepEqual(tries(now), [failed, failed, "done"]);
  assert.deepEqual(contexts(now), [{ device: "old" }, { device: "new" }]);
});

test("a volume that is to be confirmed waits for its attachment without an action, whose failure is one", async () => {
  const now = await scene();
  const volume = now.prepare(podOfVolume, spec);
  const waits: PromiseWithResolvers<AttachedVolume>[] = [];
  const attachment: KeptAttachment = {
    wait: () => {
      const wait = Promise.withResolvers<AttachedVolume>();
      waits.push(wait);
      return wait.promise;
    },
    look: () => assert.fail("it may not be published"),
  };
  const ended = begin(volume, attachment);
  await now.clock.advance(600_000);
  assert.deepEqual(now.entries, []);
  waits[0]?.reject(attachProblem(spec, new Error("no such attachment")));
  await now.clock.advance(0);
  const failed = 'MountVolume.WaitForAttach failed for volume "pv" : no such attachment';
  assert.deepEqual(tries(now), [failed]);
  await now.clock.advance(500);
  waits[1]?.resolve(attachedAs("new"));
  await ended;
  assert.deepEqual(tries(now), [failed, "done"]);
  assert.deepEqual(contexts(now), [{ device: "new" }]);
});
