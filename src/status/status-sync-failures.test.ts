import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { answer, apiPod, cause, pending, running, withWorld } from "../../test/support/status-world.ts";

describe("StatusSync, when requests fail", () => {
  test("a server that fails is asked again, ever more slowly; a pod that is gone is let be", async () => {
    await withWorld(async ({ kube, sync, statuses }) => {
      const pod = apiPod("a");
      sync.podSeen(pod);
      statuses.set(pod, running, cause);
      for (const delayMs of [500, 1000, 2000]) {
        await (await kube.next()).json({ kind: "Status", code: 503 }, 503);
        await kube.clock.advance(delayMs - 1);
        assert.ok(await kube.isQuiet());
        await kube.clock.advance(1);
      }
      await (await kube.next()).json({ kind: "Status", reason: "NotFound", code: 404 }, 404);
      await kube.clock.advance(60_000);
      assert.ok(await kube.isQuiet());
    });
  });

  test("a pod whose status the server asks to wait with keeps no other pod waiting", async () => {
    await withWorld(async ({ kube, sync, statuses }) => {
      for (const name of ["a", "b"]) sync.podSeen(apiPod(name));
      const busy = { kind: "Status", reason: "TooManyRequests", code: 429 };
      statuses.set(apiPod("a"), running, cause);
      await (await kube.next()).json(busy, 429, { "retry-after": "30" });
      statuses.set(apiPod("b"), running, cause);
      await (await kube.next()).json(answer(apiPod("b"), running, "11"));
      statuses.set(apiPod("a"), pending, cause);
      await kube.clock.advance(29_999);
      assert.ok(await kube.isQuiet());
      await kube.clock.advance(1);
      assert.equal((await kube.next()).url.pathname, "/api/v1/namespaces/ns/pods/a/status");
    });
  });

  test("a status was taken though the pod that comes back can't be read", async () => {
    await withWorld(async ({ kube, sync, statuses, journal }) => {
      const pod = apiPod("a");
      sync.podSeen(pod);
      statuses.set(pod, pending, cause);
      await kube.clock.advance(40);
      await (await kube.next()).json({ ...answer(pod, pending, "11"), spec: { containers: "none" } });
      await kube.clock.advance(60_000);
      assert.ok(await kube.isQuiet());
      assert.deepEqual(
        journal.entries.flatMap(({ what, result }) => (what === "PatchPodStatus" && result ? [result] : [])),
        ["done"],
      );
      statuses.set(pod, { ...pending, message: "m" }, cause);
      await kube.clock.advance(40);
      assert.deepEqual((await kube.next()).body, { metadata: { uid: "uid-a" }, status: { message: "m" } });
    });
  });

  test("a load balancer that knows of no pod keeps no deleted one at the server", async () => {
    await withWorld(async ({ kube, sync }) => {
      sync.podSeen(apiPod("a", { deletionTimestamp: "2026-11-20T14:02:00Z" }));
      sync.released("uid-a");
      for (const delayMs of [500, 1000]) {
        const removal = await kube.next();
        assert.equal(removal.request.method, "DELETE");
        await removal.json("default backend - 404", 404);
        await kube.clock.advance(delayMs);
      }
      assert.equal((await kube.next()).request.method, "DELETE");
    });
  });

  test("a pod that the server was said not to have, and shows all the same, is told of and removed in a while", async () => {
    await withWorld(async ({ kube, sync, statuses }) => {
      const missing = { kind: "Status", reason: "NotFound", code: 404 };
      const deletionTimestamp = "2026-11-20T14:02:00Z";
      const pod = apiPod("a", { deletionTimestamp });
      sync.podSeen(pod);
      statuses.set(pod, running, cause);
      await (await kube.next()).json(missing, 404);
      sync.podSeen(apiPod("a", { deletionTimestamp }));
      assert.ok(await kube.isQuiet(), "not at once");
      await kube.clock.advance(500);
      await (await kube.next()).json(answer(pod, running, "11"));
      sync.released("uid-a");
      await (await kube.next()).json(missing, 404);
      await kube.clock.advance(60_000);
      assert.ok(await kube.isQuiet(), "nothing was heard of it");
      await kube.clock.advance(60_000);
      await (await kube.next()).json({ kind: "Status", status: "Success" });
      sync.podSeen(apiPod("a", { deletionTimestamp, resourceVersion: "12" }, running));
      await kube.clock.advance(9999);
      assert.ok(await kube.isQuiet(), "others may hold it there");
      await kube.clock.advance(1);
      assert.equal((await kube.next()).request.method, "DELETE");
    });
  });

  test("a status that may have arrived though it failed leaves nothing of itself behind", async () => {
    await withWorld(async ({ kube, sync, statuses }) => {
      const pod = apiPod("a", {}, pending);
      sync.podSeen(pod);
      statuses.set(pod, { ...pending, message: "no room" }, cause);
      await kube.clock.advance(40);
      const lost = await kube.next();
      assert.deepEqual(lost.body, { metadata: { uid: "uid-a" }, status: { message: "no room" } });
      await lost.json({ kind: "Status", code: 504 }, 504);
      statuses.set(pod, { ...pending, reason: "Slow" }, cause);
      await kube.clock.advance(500);
      const question = await kube.next();
      assert.deepEqual([question.request.method, question.url.pathname], ["GET", "/api/v1/namespaces/ns/pods/a"]);
      await question.json(answer(pod, { ...pending, message: "no room" }, "11"));
      const patch = await kube.next();
      assert.deepEqual(patch.body, { metadata: { uid: "uid-a" }, status: { message: null, reason: "Slow" } });
      await patch.json(answer(pod, { ...pending, reason: "Slow" }, "12"));
      assert.ok(await kube.isQuiet());
    });
  });
});
