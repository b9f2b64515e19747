import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { podWith } from "../../test/support/pods.ts";
import { answer, apiPod, cause, pending, running, withWorld } from "../../test/support/status-world.ts";
import type { ContainerStatus, PodStatus } from "../api/status.ts";
import { podUid } from "../base/ids.ts";

const invalid = { kind: "Status", reason: "Invalid", message: "not so", code: 422 };

function container(state: ContainerStatus["state"]): ContainerStatus {
  return { name: "c", state, lastState: {}, ready: false, restartCount: 0, image: "i", imageID: "" };
}

describe("StatusSync, when requests fail", () => {
  test("a failing server is retried with growing delays; a removed pod is not", async () => {
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

  test("a pod with a Retry-After delays no other pod", async () => {
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

  test("a status was accepted although the response cannot be decoded", async () => {
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

  test("a 404 from a load balancer keeps no deleted pod at the server", async () => {
    await withWorld(async ({ kube, sync }) => {
      sync.podSeen(apiPod("a", { deletionTimestamp: "2026-11-20T14:02:00Z" }));
      sync.released(podUid("uid-a"));
      for (const delayMs of [500, 1000]) {
        const removal = await kube.next();
        assert.equal(removal.request.method, "DELETE");
        await removal.json("default backend - 404", 404);
        await kube.clock.advance(delayMs);
      }
      assert.equal((await kube.next()).request.method, "DELETE");
    });
  });

  test("a pod reported as not found but still visible is updated and deleted after a while", async () => {
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
      sync.released(podUid("uid-a"));
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

  test("a status that may have arrived despite an error leaves no trace", async () => {
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

  test("a rejected status is retried with growing delays; the next one is sent at once", async () => {
    await withWorld(async ({ kube, sync, statuses, refused }) => {
      const pod = apiPod("a");
      sync.podSeen(pod);
      statuses.set(pod, pending, cause);
      await kube.clock.advance(40);
      const patch = await kube.next();
      statuses.set(pod, running, cause);
      await patch.json(invalid, 422);
      const phaseOf = ({ body }: { readonly body: unknown }) => (body as { status: PodStatus }).status.phase;
      let next = await kube.next();
      for (const delayMs of [20_000, 40_000, 60_000, 60_000]) {
        assert.equal(phaseOf(next), "Running");
        await next.json(invalid, 422);
        sync.podSeen(apiPod("a", { resourceVersion: "11" }));
        await kube.clock.advance(delayMs - 1);
        assert.ok(await kube.isQuiet());
        await kube.clock.advance(1);
        next = await kube.next();
      }
      await next.json(answer(pod, running, "12"));
      statuses.set(pod, { phase: "Failed" }, cause);
      await (await kube.next()).json(invalid, 422);
      await kube.clock.advance(10_000);
      assert.equal(phaseOf(await kube.next()), "Failed");
      assert.deepEqual(refused, []);
    });
  });

  test("a deleted pod is removed once its last status was rejected", async () => {
    await withWorld(async ({ kube, sync, statuses }) => {
      const pod = apiPod("a", { deletionTimestamp: "2026-11-20T14:02:00Z" });
      sync.podSeen(pod);
      statuses.set(pod, running, cause);
      await (await kube.next()).json(invalid, 422);
      await kube.clock.advance(5000);
      assert.ok(await kube.isQuiet(), "it has not stopped yet");
      sync.released(podUid("uid-a"));
      assert.equal((await kube.next()).request.method, "DELETE");
    });
  });

  test("a rejected mirror pod is reported only if it shows an earlier instance of its pod", async () => {
    const ended = container({ terminated: { exitCode: 0, startedAt: null, finishedAt: null } });
    for (const [restartPolicy, isTold] of [
      ["Never", true],
      ["Always", false],
    ] as const) {
      await withWorld(async ({ kube, sync, statuses, refused }) => {
        const own = podWith({ containers: [{ name: "c" }] }, { name: "s-node1", uid: "static-uid" });
        const mirror = apiPod(
          "s-node1",
          { annotations: { "kubernetes.io/config.mirror": "hash" } },
          { phase: "Succeeded", containerStatuses: [ended] },
        );
        sync.podSeen({ ...mirror, spec: { ...mirror.spec, restartPolicy } });
        const now = container({ running: { startedAt: null } });
        statuses.set(own, { ...running, containerStatuses: [now] }, cause);
        await (await kube.next()).json(invalid, 422);
        assert.deepEqual(refused, isTold ? ["uid-s-node1"] : []);
      });
    }
  });

  test("pods whose status updates hang delay no other pod's readiness or removal", async () => {
    await withWorld(async ({ kube, sync, statuses }) => {
      const names = Array.from({ length: 18 }, (_, index) => `hangs${index}`);
      const told = async (count: number) => {
        const requests = await Promise.all(Array.from({ length: count }, () => kube.next()));
        return requests.map(({ request, url }) => `${request.method} ${url.pathname.split("/").slice(6).join(" ")}`);
      };
      for (const name of names) {
        sync.podSeen(apiPod(name));
        statuses.set(apiPod(name), running, cause);
      }
      assert.deepEqual(
        await told(16),
        names.slice(0, 16).map((name) => `PATCH ${name} status`),
      );
      assert.ok(await kube.isQuiet(), "nobody knows yet that they hang");
      await kube.clock.advance(2000);
      assert.deepEqual(await told(2), ["PATCH hangs16 status", "PATCH hangs17 status"]);
      const healthy = async (name: string): Promise<void> => {
        const pod = apiPod(name);
        sync.podSeen(pod);
        statuses.set(pod, running, cause);
        const patch = await kube.next();
        assert.equal(patch.url.pathname, `/api/v1/namespaces/ns/pods/${name}/status`);
        await patch.json(answer(pod, running, "11"));
        sync.podSeen(apiPod(name, { resourceVersion: "12", deletionTimestamp: "2026-11-20T14:02:00Z" }, running));
        sync.released(podUid(`uid-${name}`));
        assert.deepEqual(await told(1), [`DELETE ${name}`]);
      };
      await healthy("b");
      // All have failed at their deadlines, and hang again.
      await kube.clock.advance(28_000);
      await kube.clock.advance(500);
      assert.deepEqual(
        await told(8),
        names.slice(0, 8).map((name) => `GET ${name}`),
      );
      assert.ok(await kube.isQuiet(), "half of the places are for others");
      await healthy("c");
    });
  });
});
