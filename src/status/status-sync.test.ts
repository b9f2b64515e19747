import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { podWith } from "../../test/support/pods.ts";
import { answer, apiPod, cause, pending, ready, running, withWorld } from "../../test/support/status-world.ts";
import type { PodStatus } from "../api/status.ts";
import { podUid } from "../base/ids.ts";

/** How long a non-urgent status is delayed. */
const detailsMs = 40;

describe("StatusSync", () => {
  test("patches a status without reading first, with a UID precondition", async () => {
    await withWorld(async ({ kube, sync, statuses, journal }) => {
      const pod = apiPod("a");
      sync.podSeen(pod);
      assert.ok(await kube.isQuiet(), "there is nothing to say yet");
      statuses.set(pod, running, cause);
      const patch = await kube.next();
      assert.deepEqual([patch.request.method, patch.url.pathname], ["PATCH", "/api/v1/namespaces/ns/pods/a/status"]);
      assert.deepEqual(patch.body, {
        metadata: { uid: "uid-a" },
        status: {
          phase: "Running",
          "$setElementOrder/conditions": [{ type: "Ready" }],
          conditions: [ready("True")],
        },
      });
      await patch.json(answer(pod, running, "11"));
      assert.ok(await kube.isQuiet());
      assert.deepEqual(
        journal.entries.filter(({ what }) => what === "PatchPodStatus").map((entry) => [entry.kind, entry.cause?.code]),
        [
          ["action", "Resync"],
          ["outcome", undefined],
        ],
      );
    });
  });

  test("statuses of one pod are sent in order, and only the latest counts", async () => {
    await withWorld(async ({ kube, sync, statuses }) => {
      const pod = apiPod("a");
      sync.podSeen(pod);
      statuses.set(pod, pending, cause);
      await kube.clock.advance(detailsMs);
      const first = await kube.next();
      statuses.set(pod, { ...pending, message: "overtaken" }, cause);
      statuses.set(pod, running, cause);
      assert.ok(await kube.isQuiet());
      await first.json(answer(pod, pending, "11"));
      const second = await kube.next();
      assert.equal((second.body as { status: PodStatus }).status.phase, "Running");
      assert.equal((second.body as { status: PodStatus }).status.message, undefined);
      await second.json(answer(pod, running, "12"));
    });
  });

  test("non-urgent changes are delayed briefly and combined with what follows", async () => {
    await withWorld(async ({ kube, sync, statuses }) => {
      const pod = apiPod("a");
      sync.podSeen(pod);
      statuses.set(pod, pending, cause);
      await kube.clock.advance(detailsMs - 1);
      assert.ok(await kube.isQuiet());
      statuses.set(pod, { ...pending, message: "m" }, cause);
      await kube.clock.advance(1);
      const details = await kube.next();
      assert.equal((details.body as { status: PodStatus }).status.message, "m");
      await details.json(answer(pod, { ...pending, message: "m" }, "11"));
      statuses.set(pod, { ...pending, message: "n" }, cause);
      statuses.set(pod, running, cause);
      await (await kube.next()).json(answer(pod, running, "12"));
      await kube.clock.advance(detailsMs);
      assert.ok(await kube.isQuiet());
    });
  });

  test("pods are written concurrently, deletions and readiness changes first", async () => {
    await withWorld(async ({ kube, sync, statuses }) => {
      const pods = Array.from({ length: 16 }, (_, index) => apiPod(`p${index}`));
      for (const pod of pods) {
        sync.podSeen(pod);
        statuses.set(pod, pending, cause);
      }
      await kube.clock.advance(detailsMs);
      const begun = await Promise.all(pods.map(() => kube.next()));
      const later = ["waits", "ready", "gone"].map((name) =>
        apiPod(name, name === "gone" ? { deletionTimestamp: "2026-11-20T14:02:00Z" } : {}),
      );
      for (const pod of later) {
        sync.podSeen(pod);
        statuses.set(pod, pod.metadata.name === "ready" ? running : pending, cause);
      }
      await kube.clock.advance(detailsMs);
      assert.ok(await kube.isQuiet());
      const order: string[] = [];
      for (const request of begun.slice(0, 3)) {
        const pod = pods[begun.indexOf(request)];
        if (pod !== undefined) await request.json(answer(pod, pending, "11"));
        order.push((await kube.next()).url.pathname);
      }
      assert.deepEqual(
        order.map((path) => path.split("/").at(-2)),
        ["gone", "ready", "waits"],
      );
    });
  });

  test("a deleted pod is removed once it has stopped and its last status was sent, with a UID precondition", async () => {
    await withWorld(async ({ kube, sync, statuses }) => {
      const pod = apiPod("a", { deletionTimestamp: "2026-11-20T14:02:00Z" });
      sync.podSeen(pod);
      const done: PodStatus = { phase: "Succeeded" };
      statuses.set(pod, done, cause);
      const patch = await kube.next();
      sync.released(podUid("uid-a"));
      assert.ok(await kube.isQuiet());
      await patch.json(answer(pod, done, "11"));
      const removal = await kube.next();
      assert.deepEqual([removal.request.method, removal.url.pathname], ["DELETE", "/api/v1/namespaces/ns/pods/a"]);
      assert.deepEqual(removal.body, { gracePeriodSeconds: 0, preconditions: { uid: "uid-a" } });
      await removal.json({ kind: "Status", status: "Success" });
      sync.released(podUid("uid-a"));
      assert.ok(await kube.isQuiet(), "it is removed once");
    });
  });

  test("a pod that is not deleted stays at the server when it is done", async () => {
    await withWorld(async ({ kube, sync, statuses }) => {
      const pod = apiPod("a", {}, { phase: "Succeeded" });
      sync.podSeen(pod);
      statuses.set(pod, { phase: "Succeeded", message: "done" }, cause);
      await kube.clock.advance(detailsMs);
      await (await kube.next()).json(answer(pod, { phase: "Succeeded", message: "done" }, "11"));
      sync.released(podUid("uid-a"));
      assert.ok(await kube.isQuiet());
    });
  });

  test("a status of an earlier run is the starting point of a new one, and is not sent back", async () => {
    await withWorld(async ({ kube, sync, statuses }) => {
      const pod = apiPod("a", {}, running);
      sync.podSeen(pod);
      assert.deepEqual(statuses.get(podUid("uid-a")), running);
      assert.ok(await kube.isQuiet());
      statuses.set(pod, { ...running }, cause);
      assert.ok(await kube.isQuiet(), "it says the same");
    });
  });

  test("changes by others before this run's first status are its starting point", async () => {
    await withWorld(async ({ sync, statuses }) => {
      const conditions = [{ ...ready("False"), lastTransitionTime: "2026-11-22T10:00:00Z" }];
      sync.podSeen(apiPod("a", {}, { phase: "Pending" }));
      sync.podSeen(apiPod("a", { resourceVersion: "11" }, { ...pending, conditions }));
      assert.deepEqual(statuses.get(podUid("uid-a"))?.conditions, conditions);
    });
  });

  test("foreign changes of the kubelet's part of a status are corrected after a while", async () => {
    await withWorld(async ({ kube, sync, statuses }) => {
      const pod = apiPod("a");
      sync.podSeen(pod);
      statuses.set(pod, running, cause);
      await (await kube.next()).json(answer(pod, running, "11"));
      sync.podSeen(apiPod("a", { resourceVersion: "9" }, pending));
      await kube.clock.advance(20_000);
      assert.ok(await kube.isQuiet(), "that was before");
      sync.podSeen(apiPod("a", { resourceVersion: "12" }, pending));
      assert.ok(await kube.isQuiet());
      await kube.clock.advance(10_000);
      assert.equal(((await kube.next()).body as { status: PodStatus }).status.phase, "Running");
    });
  });

  test("a running pod that others report as Failed is reported as Running again", async () => {
    await withWorld(async ({ kube, sync, statuses }) => {
      const pod = apiPod("a");
      sync.podSeen(pod);
      statuses.set(pod, running, cause);
      await (await kube.next()).json(answer(pod, running, "11"));
      sync.podSeen(apiPod("a", { resourceVersion: "12" }, { ...running, phase: "Failed", reason: "Fenced" }));
      assert.equal(statuses.hadEnded(podUid("uid-a")), false);
      await kube.clock.advance(10_000);
      const { status } = (await kube.next()).body as { status: PodStatus };
      assert.deepEqual([status.phase, status.reason], ["Running", null]);
    });
  });

  test("a part that the server never accepts is not sent repeatedly", async () => {
    await withWorld(async ({ kube, sync, statuses }) => {
      const pod = apiPod("a");
      sync.podSeen(pod);
      statuses.set(pod, { ...running, message: "not for this server" }, cause);
      await (await kube.next()).json(answer(pod, running, "11"));
      sync.podSeen(apiPod("a", { resourceVersion: "12" }, running));
      await kube.clock.advance(60_000);
      assert.ok(await kube.isQuiet());
    });
  });

  test("a foreign change during a patch is corrected after a while", async () => {
    await withWorld(async ({ kube, sync, statuses }) => {
      const [pod, unready] = [apiPod("a"), { ...running, conditions: [ready("False")] }];
      sync.podSeen(pod);
      statuses.set(pod, running, cause);
      await (await kube.next()).json(answer(pod, running, "11"));
      statuses.set(pod, { ...running, message: "m" }, cause);
      await kube.clock.advance(detailsMs);
      const slow = await kube.next();
      assert.deepEqual(slow.body, { metadata: { uid: "uid-a" }, status: { message: "m" } });
      await slow.json(answer(pod, { ...unready, message: "m" }, "13"));
      await kube.clock.advance(9_999);
      assert.ok(await kube.isQuiet());
      await kube.clock.advance(1);
      const { status } = (await kube.next()).body as { status: PodStatus };
      assert.deepEqual(
        status.conditions?.map(({ type, status: is }) => [type, is]),
        [["Ready", "True"]],
      );
    });
  });

  test("a foreign change after a patch is corrected even if its event precedes the response", async () => {
    await withWorld(async ({ kube, sync, statuses }) => {
      const pod = apiPod("a");
      sync.podSeen(pod);
      statuses.set(pod, running, cause);
      const slow = await kube.next();
      sync.podSeen(apiPod("a", { resourceVersion: "12" }, { ...running, conditions: [ready("False")] }));
      await slow.json(answer(pod, running, "11"));
      assert.ok(await kube.isQuiet());
      await kube.clock.advance(10_000);
      const { status } = (await kube.next()).body as { status: PodStatus };
      assert.equal(status.conditions?.[0]?.status, "True");
    });
  });

  test("conditions of others are not changed", async () => {
    await withWorld(async ({ kube, sync, statuses }) => {
      const gate = { ...ready("True"), type: "example.org/gate" };
      const pod = apiPod("a", {}, { phase: "Pending", conditions: [gate] });
      sync.podSeen(pod);
      statuses.set(pod, { ...running, conditions: [{ ...gate, status: "False" }, ready("True")] }, cause);
      const { status } = (await kube.next()).body as { status: PodStatus };
      assert.deepEqual(status.conditions, [ready("True")]);
    });
  });

  test("a later condition of others is part of the next status, and syncs the pod", async () => {
    await withWorld(async ({ kube, sync, statuses, changed }) => {
      const gate = { ...ready("True"), type: "example.org/gate" };
      sync.podSeen(apiPod("a"));
      statuses.set(apiPod("a"), running, cause);
      await (await kube.next()).json(answer(apiPod("a"), running, "11"));
      sync.podSeen(apiPod("a", { resourceVersion: "12" }, { ...running, conditions: [gate, ready("True")] }));
      assert.deepEqual(changed, ["uid-a"]);
      assert.deepEqual(statuses.get(podUid("uid-a"))?.conditions, [gate, ready("True")]);
      sync.podSeen(apiPod("a", { resourceVersion: "13" }, { ...running, conditions: [gate, ready("True")] }));
      assert.equal(changed.length, 1);
      assert.ok(await kube.isQuiet(), "it is not ours to tell");
    });
  });

  test("a condition that others set during a patch is known from the response", async () => {
    await withWorld(async ({ kube, sync, statuses, changed }) => {
      const [pod, gate] = [apiPod("a"), { ...ready("True"), type: "example.org/gate" }];
      sync.podSeen(apiPod("a", {}, { ...pending, conditions: [gate] }));
      statuses.set(pod, { ...running, conditions: [gate, ready("True")] }, cause);
      // It is gone by the time the patch arrives, and another one exists.
      const other = { ...gate, type: "example.org/other" };
      await (await kube.next()).json(answer(pod, { ...running, conditions: [other, ready("True")] }, "12"));
      assert.deepEqual(changed, ["uid-a"]);
      assert.deepEqual(statuses.get(podUid("uid-a"))?.conditions, [other, ready("True")]);
      await kube.clock.advance(20_000);
      assert.ok(await kube.isQuiet(), "nothing is put back");
    });
  });

  test("a static pod's status goes to its mirror pod, once there is one", async () => {
    await withWorld(async ({ kube, sync, statuses }) => {
      const own = podWith({ containers: [{ name: "c" }] }, { name: "s-node1", uid: "static-uid" });
      statuses.set(own, running, cause);
      assert.ok(await kube.isQuiet());
      sync.podSeen(apiPod("s-node1", { annotations: { "kubernetes.io/config.mirror": "hash" } }));
      const patch = await kube.next();
      assert.equal((patch.body as { metadata: { uid: string } }).metadata.uid, "uid-s-node1");
      assert.equal(patch.url.pathname, "/api/v1/namespaces/ns/pods/s-node1/status");
    });
  });

  test("a static pod's transition times come from its mirror pod, whichever is known first", async () => {
    const since = "2026-11-19T00:00:00Z";
    const told = { ...running, startTime: since, conditions: [{ ...ready("True"), lastTransitionTime: since }] };
    const mirror = apiPod("s-node1", { annotations: { "kubernetes.io/config.mirror": "hash" } }, told);
    const own = podWith({ containers: [{ name: "c" }] }, { name: "s-node1", uid: "static-uid" });
    for (const mirrorFirst of [true, false]) {
      await withWorld(async ({ kube, sync, statuses }) => {
        if (mirrorFirst) sync.podSeen(mirror);
        statuses.set(own, running, cause);
        if (!mirrorFirst) sync.podSeen(mirror);
        assert.equal(statuses.get(podUid("static-uid"))?.startTime, since);
        assert.equal(statuses.get(podUid("static-uid"))?.conditions?.[0]?.lastTransitionTime, since);
        assert.ok(await kube.isQuiet(), "the server knows all that");
      });
    }
  });

  test("a static pod's last status does not go to its successor's mirror pod", async () => {
    await withWorld(async ({ kube, sync, statuses, hashes }) => {
      const [old, next] = ["static-uid", "next-uid"].map((uid) =>
        podWith({ containers: [{ name: "c" }] }, { name: "s-node1", uid }),
      );
      assert.ok(old && next);
      hashes.set("next-uid", "next hash");
      sync.podSeen(apiPod("s-node1", { annotations: { "kubernetes.io/config.mirror": "next hash" } }));
      statuses.set(old, { ...running, phase: "Failed" }, cause);
      assert.ok(await kube.isQuiet(), "what ended is not the pod that is shown there");
      statuses.set(next, running, cause);
      assert.equal(((await kube.next()).body as { status: PodStatus }).status.phase, "Running");
    });
  });

  test("a static pod reported before its predecessor's last status gets its own status at its mirror pod", async () => {
    await withWorld(async ({ kube, sync, statuses, hashes }) => {
      const [old, next] = ["static-uid", "next-uid"].map((uid) =>
        podWith({ containers: [{ name: "c" }] }, { name: "s-node1", uid }),
      );
      assert.ok(old && next);
      hashes.set("next-uid", "next hash");
      // It ended while waiting for the name.
      statuses.set(next, { ...pending, phase: "Failed" }, cause);
      statuses.set(old, { ...running, phase: "Succeeded" }, cause);
      hashes.delete("static-uid");
      sync.podSeen(apiPod("s-node1", { annotations: { "kubernetes.io/config.mirror": "next hash" } }));
      assert.equal(((await kube.next()).body as { status: PodStatus }).status.phase, "Failed");
    });
  });

  test("a pod that was replaced by another of its name is dropped silently", async () => {
    await withWorld(async ({ kube, sync, statuses, refused }) => {
      const message = 'Pod "a" is invalid: metadata.uid: Invalid value: "uid-a": field is immutable';
      const pod = apiPod("a", { deletionTimestamp: "2026-11-20T14:02:00Z" });
      sync.podSeen(pod);
      statuses.set(pod, running, cause);
      await (await kube.next()).json({ kind: "Status", reason: "Invalid", message, code: 422 }, 422);
      sync.released(podUid("uid-a"));
      await kube.clock.advance(60_000);
      assert.ok(await kube.isQuiet(), "neither told again nor deleted");
      assert.deepEqual(refused, []);
    });
  });

  test("a pod that others keep changing gets its status, and is removed, once they stop", async () => {
    await withWorld(async ({ kube, sync, statuses }) => {
      const conflict = { kind: "Status", reason: "Conflict", message: "the object has been modified", code: 409 };
      const pod = apiPod("a", { deletionTimestamp: "2026-11-20T14:02:00Z" });
      sync.podSeen(pod);
      statuses.set(pod, running, cause);
      await (await kube.next()).json(conflict, 409);
      await kube.clock.advance(500);
      await (await kube.next()).json(answer(pod, running, "11"));
      sync.released(podUid("uid-a"));
      await (await kube.next()).json(conflict, 409);
      await kube.clock.advance(500);
      assert.equal((await kube.next()).request.method, "DELETE");
    });
  });
});
