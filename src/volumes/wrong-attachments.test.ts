import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { Fixture } from "../../test/support/claimed-volumes.ts";
import { boundClaim } from "../../test/support/storage.ts";
import { podOfVolumes } from "../../test/support/volumes.ts";
import type { PersistentVolume } from "../api/persistent-volume.ts";
import type { Pod } from "../api/pod.ts";
import type { VolumeAttachment } from "../api/volume-attachment.ts";
import { termOf } from "../journal/vocabulary.ts";

const name = "kubernetes.io/csi/d^h";
const listed = { volumesInUse: [name], volumesAttached: [{ name }] };
const claimed = podOfVolumes([{ name: "data", persistentVolumeClaim: { claimName: "c" } }]);
const pod: Pod = { ...claimed, metadata: { ...claimed.metadata, creationTimestamp: "2026-01-01T00:00:05Z" } };
let fixture: Fixture;

beforeEach(async () => {
  fixture = new Fixture();
  await bind();
});

async function bind(changed: Partial<PersistentVolume["spec"]> = {}): Promise<void> {
  await fixture.bound("c", { local: undefined, csi: { driver: "d", volumeHandle: "h" }, ...changed });
}

function attachment(status: VolumeAttachment["status"], changed: object = {}): void {
  fixture.storage.attachments.set("csi-h", { metadata: { name: "csi-h", uid: "a", ...changed }, status });
}

function told(what: string): string[] {
  return fixture.entries.filter((entry) => entry.what === what).map(({ message }) => message);
}

test("a pod that waits for an attachment is set up as soon as its driver turns out to need none", async () => {
  const { driver, node, clock } = fixture;
  const first = await fixture.begins(pod);
  await clock.advance(123_000);
  await assert.rejects(first.mounted, /unattached volumes=\[data\]/u);
  const { mounted } = await fixture.begins(pod);
  await clock.advance(200);
  driver.change({ attaches: "yes" });
  await clock.advance(200);
  assert.deepEqual([driver.setUps.length, node.used], [0, [name]]);
  driver.change({ attaches: "no" });
  await clock.advance(0);
  assert.deepEqual(driver.setUps, [undefined]);
  assert.equal((await mounted).size, 1);
  assert.deepEqual(node.used, [], "nothing detaches it");
  assert.deepEqual([told("VolumeWaitOver").length > 0, fixture.clock.waits], [true, []]);
});

test("a volume that the Node lists as attached stays in use, also if its driver turns out to need no attachment", async () => {
  const { driver, node } = fixture;
  const { mounted } = await fixture.begins(pod);
  node.seen({ volumesInUse: [], volumesAttached: [{ name }] });
  driver.change({ attaches: "no" });
  await fixture.clock.advance(0);
  assert.equal(driver.setUps.length, 1);
  await mounted;
  assert.deepEqual(node.used, [name]);
});

test("a driver that stops a pod's wait for its attachment with an error is asked again", async () => {
  const { driver } = fixture;
  const { mounted } = await fixture.begins(pod);
  driver.change({ attaches: "unknown" });
  await fixture.clock.advance(0);
  assert.deepEqual(fixture.failures, [], "it waits");
  assert.equal(told("VolumeUnattached").at(-1), "volume data is not attached yet: driver d has no CSIDriver object");
  driver.change({ attaches: "no" });
  await fixture.clock.advance(0);
  assert.equal(driver.setUps.length, 1);
  assert.equal((await mounted).size, 1);
});

test("a limit of a driver is taken up that is set while a pod waits", async () => {
  const { driver, clock } = fixture;
  driver.hasLimit = false;
  await fixture.begins(pod);
  attachment({ attachError: { time: "2026-01-01T00:00:07Z", message: "full", errorCode: 8 } });
  await clock.advance(30_000);
  assert.deepEqual(fixture.rejected, []);
  driver.change({ hasLimit: true });
  await clock.advance(2000);
  assert.equal(fixture.rejected.length, 1);
});

for (const [what, changed] of [
  ["an earlier pod left", {}],
  ["is being deleted", { deletionTimestamp: "2026-01-01T00:00:04Z" }],
] as const) {
  test(`a pod is not rejected for a VolumeAttachment that ${what}, until an attempt for the pod itself fails`, async () => {
    const { clock } = fixture;
    attachment({ attachError: { time: "2026-01-01T00:00:05Z", message: "full", errorCode: 8 } }, changed);
    await fixture.begins(pod);
    await clock.advance(60_000);
    assert.deepEqual(fixture.rejected, []);
    attachment({ attachError: { time: "2026-01-01T00:01:05Z", message: "full", errorCode: 8 } });
    await clock.advance(4000);
    assert.equal(fixture.rejected.length, 1);
    assert.equal(fixture.driver.limits, 1);
  });
}

test("the reason of a wait is told once while nothing changes", async () => {
  attachment({ attachError: { message: "no such disk", errorCode: 5 } });
  await fixture.begins(pod);
  await fixture.clock.advance(60_000);
  assert.deepEqual(told("VolumeUnattached"), ["volume data is not attached yet: no such disk"]);
});

const wrong: readonly (readonly [string, () => void, string])[] = [
  [
    "is being deleted",
    () => attachment({ attached: true }, { deletionTimestamp: "2026-01-01T00:00:00Z" }),
    "volume attachment is being deleted",
  ],
  [
    "is missing",
    () => {},
    'volume h has GET error for volume attachment csi-h: volumeattachments.storage.k8s.io "csi-h" not found',
  ],
  ["is not attached", () => attachment({ attached: false }), "volume h is not attached for volume attachment csi-h"],
  ["has failed", () => attachment({ attached: false, attachError: { message: "no such disk" } }), "no such disk"],
];
for (const [what, change, why] of wrong) {
  for (const mode of ["Filesystem", "Block"] as const) {
    test(`a volume whose VolumeAttachment ${what} though the Node lists it fails with an Event, as ${mode}`, async () => {
      const step = mode === "Block" ? "MapVolume" : "MountVolume";
      const devices = [{ name: "data", devicePath: "/dev/data" }];
      const mapped = { ...pod, spec: { ...pod.spec, containers: [{ name: "app", volumeDevices: devices }] } };
      await bind({ volumeMode: mode });
      fixture.node.seen(listed);
      change();
      const { mounted } = await fixture.begins(mode === "Block" ? mapped : pod);
      assert.deepEqual(fixture.failures, [`${step}.WaitForAttach failed for volume "pv-c" : ${why}`]);
      const { failed: event } = termOf(step);
      assert.equal(event?.reason, mode === "Block" ? "FailedMapVolume" : "FailedMount");
      assert.deepEqual(told("VolumeUnattached"), []);
      attachment({ attached: true });
      await fixture.clock.advance(500);
      assert.equal((await mounted).size, 1);
    });
  }
}

test("the first error of a volume's driver after a long wait for its claim is followed by a try 0.5 s later", async () => {
  const { clock, driver, node, storage } = fixture;
  node.seen(listed);
  attachment({ attached: true });
  const bound = boundClaim("c");
  storage.claims.set("ns/c", { ...bound, status: { phase: "Pending" } });
  const { mounted } = await fixture.begins(pod);
  await clock.advance(60_000);
  storage.claims.set("ns/c", bound);
  driver.problem = new Error("no such disk");
  const prepared = (): number => driver.prepared;
  const before = prepared();
  while (prepared() === before) await clock.advance(100);
  driver.problem = undefined;
  await clock.advance(499);
  assert.deepEqual(driver.setUps, []);
  await clock.advance(1);
  assert.equal(driver.setUps.length, 1);
  assert.equal((await mounted).size, 1);
});
