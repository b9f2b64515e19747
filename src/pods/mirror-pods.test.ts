import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { mirrorPod, staticPod } from "../../test/support/mirror-pods.ts";
import { ScriptedKube } from "../../test/support/scripted-kube.ts";
import { MemoryRecorder, silentLog } from "../../test/support/sources.ts";
import type { Pod } from "../api/pod.ts";
import { podUid } from "../base/ids.ts";
import type { LogFields } from "../ports/log.ts";
import type { OwnStaticPod } from "./mirror-actions.ts";
import { MirrorPods } from "./mirror-pods.ts";

describe("MirrorPods", () => {
  interface World {
    readonly kube: ScriptedKube;
    readonly mirrors: MirrorPods;
    /** The messages in the log. */
    readonly told: string[];
    statics: Pod[];
    own: OwnStaticPod[];
    uid: string | undefined;
    allKnown: boolean;
  }

  async function withWorld(work: (world: World) => Promise<void>): Promise<void> {
    const kube = new ScriptedKube();
    const told: string[] = [];
    const tell = (message: string, { reason, remedy }: LogFields = {}): void => {
      told.push([message, reason, remedy].flatMap((part) => (typeof part === "string" ? [part] : [])).join("; "));
    };
    const world: World = {
      kube,
      told,
      statics: [],
      own: [],
      uid: "n",
      allKnown: true,
      mirrors: new MirrorPods({
        ...{
          client: kube.client(),
          clock: kube.clock,
          journal: new MemoryRecorder(),
          log: { ...silentLog, info: tell, warn: tell },
          nodeName: "node1",
        },
        nodeUid: () => world.uid,
        statics: () => world.statics,
        own: () => world.own,
        allKnown: () => world.allKnown,
      }),
    };
    const stop = new AbortController();
    const ended = world.mirrors.run(stop.signal);
    await work(world);
    stop.abort(new Error("the test is over"));
    await ended;
    assert.deepEqual(kube.clock.waits, []);
  }

  test("waits until the node is registered and all pods are known", async () => {
    await withWorld(async (world) => {
      world.statics = [staticPod("a", "1")];
      world.uid = undefined;
      world.mirrors.podsKnown();
      assert.ok(await world.kube.isQuiet());
      world.uid = "n";
      world.mirrors.wake();
      const creation = await world.kube.next();
      assert.equal(creation.url.pathname, "/api/v1/namespaces/ns/pods");
      await creation.json(mirrorPod("a", "1"), 201);
      world.mirrors.wake();
      assert.ok(await world.kube.isQuiet(), "it is made once");
    });
  });

  test("without a Node a terminating mirror pod is removed, and none is created", async () => {
    await withWorld(async (world) => {
      world.statics = [staticPod("a", "1"), staticPod("b", "2")];
      const { metadata, ...mirror } = mirrorPod("a", "1");
      world.mirrors.podSeen({ ...mirror, metadata: { ...metadata, deletionTimestamp: "2026-11-20T19:31:27Z" } });
      world.uid = undefined;
      world.mirrors.podsKnown();
      assert.equal((await world.kube.next()).request.method, "DELETE");
      assert.ok(await world.kube.isQuiet());
    });
  });

  test("a request without a response delays no other mirror pod", async () => {
    await withWorld(async (world) => {
      world.statics = [staticPod("slow", "1")];
      world.mirrors.podsKnown();
      const hanging = await world.kube.next();
      world.statics = [staticPod("slow", "1"), staticPod("late", "2")];
      world.mirrors.wake();
      await world.kube.clock.advance(2000);
      const creation = await world.kube.next();
      assert.equal((creation.body as { metadata: { name: string } }).metadata.name, "late");
      await creation.json(mirrorPod("late", "2"), 201);
      await world.kube.clock.advance(5000);
      assert.ok(await world.kube.isQuiet(), "what is under way is not begun again");
      await hanging.json({ kind: "Status", reason: "InternalError", code: 500 }, 500);
      const again = await world.kube.next();
      assert.equal((again.body as { metadata: { name: string } }).metadata.name, "slow");
      await again.json(mirrorPod("slow", "1"), 201);
    });
  });

  test("a mirror pod is not an orphan before all manifests have been read", async () => {
    await withWorld(async (world) => {
      world.allKnown = false;
      world.mirrors.podSeen(mirrorPod("a", "1"));
      world.mirrors.podsKnown();
      assert.ok(await world.kube.isQuiet());
      world.allKnown = true;
      world.mirrors.wake();
      assert.equal((await world.kube.next()).request.method, "DELETE");
    });
  });

  test("the mirror pod of a stopping pod stays until the pod is gone", async () => {
    await withWorld(async (world) => {
      const pod = staticPod("a", "1");
      world.own = [{ pod, isStopping: false }];
      world.mirrors.podSeen(mirrorPod("a", "1"));
      world.mirrors.podsKnown();
      assert.ok(await world.kube.isQuiet(), "its worker has not heard of it");
      world.statics = [staticPod("a", "2")];
      world.own = [{ pod, isStopping: true }];
      world.mirrors.wake();
      assert.ok(await world.kube.isQuiet());
      world.own = [];
      world.mirrors.wake();
      const deletion = await world.kube.next();
      assert.deepEqual([deletion.request.method, world.mirrors.count], ["DELETE", 1]);
      await deletion.json({});
      world.mirrors.podGone(mirrorPod("a", "1"));
      assert.deepEqual([(await world.kube.next()).request.method, world.mirrors.count], ["POST", 0]);
    });
  });

  test("a mirror pod that a user deletes is recreated", async () => {
    await withWorld(async (world) => {
      world.statics = [staticPod("a", "1")];
      world.mirrors.podSeen(mirrorPod("a", "1"));
      world.mirrors.podsKnown();
      assert.ok(await world.kube.isQuiet());
      world.mirrors.podGone(mirrorPod("a", "1"));
      assert.equal((await world.kube.next()).request.method, "POST");
    });
  });

  test("a mirror pod that was created and deleted during its creation call is recreated", async () => {
    await withWorld(async (world) => {
      world.statics = [staticPod("a", "1")];
      world.mirrors.podsKnown();
      const creation = await world.kube.next();
      world.mirrors.podSeen(mirrorPod("a", "1"));
      world.mirrors.podGone(mirrorPod("a", "1"));
      await creation.json(mirrorPod("a", "1"), 201);
      assert.equal((await world.kube.next()).request.method, "POST");
    });
  });

  test("a mirror pod that the watch never reports is looked up", async () => {
    await withWorld(async (world) => {
      world.statics = [staticPod("a", "1")];
      world.mirrors.podsKnown();
      await (await world.kube.next()).json(mirrorPod("a", "1"), 201);
      world.mirrors.podsKnown();
      assert.ok(await world.kube.isQuiet());
      await world.kube.clock.advance(60_000);
      assert.equal((await world.kube.next()).request.method, "POST");
    });
  });

  test("a mirror pod whose status the server rejects is recreated", async () => {
    await withWorld(async (world) => {
      world.statics = [staticPod("a", "1")];
      world.mirrors.podSeen(mirrorPod("a", "1"));
      world.mirrors.podsKnown();
      assert.ok(await world.kube.isQuiet());
      world.mirrors.refused(podUid("mirror-a"));
      const removal = await world.kube.next();
      assert.equal(removal.request.method, "DELETE");
      await removal.json({ kind: "Status", status: "Success" });
      world.mirrors.podGone(mirrorPod("a", "1"));
      assert.equal((await world.kube.next()).request.method, "POST");
    });
  });

  test("a mirror pod that is rejected repeatedly is recreated with a back-off, which is logged once", async () => {
    await withWorld(async (world) => {
      const { mirrors, kube, told } = world;
      world.statics = [staticPod("a", "1")];
      mirrors.podsKnown();
      let round = 0;
      const appears = async (): Promise<string> => {
        const uid = `mirror-${++round}`;
        await (await kube.next()).json(mirrorPod("a", "1", { uid }), 201);
        mirrors.podSeen(mirrorPod("a", "1", { uid }));
        mirrors.refused(podUid(uid));
        return uid;
      };
      const goes = async (uid: string): Promise<void> => {
        const removal = await kube.next();
        assert.deepEqual(removal.body, { gracePeriodSeconds: 0, preconditions: { uid } });
        await removal.json({ kind: "Status", status: "Success" });
        mirrors.podGone(mirrorPod("a", "1", { uid }));
      };
      let uid = await appears();
      await goes(uid);
      for (const delayMs of [60_000, 120_000, 240_000, 300_000]) {
        uid = await appears();
        await kube.clock.advance(delayMs - 1);
        mirrors.refused(podUid(uid));
        assert.ok(await kube.isQuiet());
        await kube.clock.advance(1);
        mirrors.refused(podUid(uid));
        await goes(uid);
      }
      assert.deepEqual(told, [
        "API server still rejects the status of a mirror pod; the mirror pod shows a terminal phase that " +
          "the static pod has not reached, even after its recreation",
      ]);
    });
  });

  test("a removed mirror pod is not removed again before the watch reports it", async () => {
    await withWorld(async (world) => {
      world.mirrors.podsKnown();
      const gone = { kind: "Status", code: 404, reason: "NotFound", message: "gone" };
      for (const [uid, status, answer] of [
        ["done", 200, { kind: "Status", status: "Success" }],
        ["gone", 404, gone],
      ] as const) {
        world.mirrors.podSeen(mirrorPod(uid, "1", { uid }));
        await (await world.kube.next()).json(answer, status);
        world.mirrors.wake();
        assert.ok(await world.kube.isQuiet());
      }
      await world.kube.clock.advance(60_000);
      assert.equal((await world.kube.next()).request.method, "DELETE", "whatever the watch tells");
    });
  });

  test("a removal has the UID as precondition, and is retried after a failure", async () => {
    await withWorld(async (world) => {
      world.mirrors.podSeen(mirrorPod("a", "1"));
      world.mirrors.podsKnown();
      const removal = await world.kube.next();
      assert.deepEqual(removal.body, { gracePeriodSeconds: 0, preconditions: { uid: "mirror-a" } });
      await removal.json({ kind: "Status", code: 500 }, 500);
      await world.kube.clock.advance(5000);
      assert.equal((await world.kube.next()).request.method, "DELETE");
    });
  });

  const failure = (code: number, reason: string, message: string): object => ({
    kind: "Status",
    code,
    reason,
    message,
  });
  const noNamespace = failure(404, "NotFound", 'namespaces "ns" not found');
  const taken = failure(409, "AlreadyExists", 'pods "a" already exists');

  test("a missing namespace is logged once and retried, until the mirror pod can be created", async () => {
    await withWorld(async (world) => {
      world.statics = [staticPod("a", "1")];
      world.mirrors.podsKnown();
      const missing = ["cannot create a mirror pod; its namespace does not exist; create the namespace ns"];
      for (let round = 0; round < 3; round++) {
        await (await world.kube.next()).json(noNamespace, 404);
        assert.deepEqual(world.told, missing);
        await world.kube.clock.advance(60_000);
      }
      await (await world.kube.next()).json(mirrorPod("a", "1"), 201);
      assert.deepEqual(world.told, [...missing, "mirror pod managed again after failures"]);
    });
  });

  test("Retry-After for one mirror pod delays no other", async () => {
    await withWorld(async (world) => {
      world.statics = [staticPod("a", "1")];
      world.mirrors.podsKnown();
      const busy = failure(429, "TooManyRequests", "busy");
      await (await world.kube.next()).json(busy, 429, { "retry-after": "30" });
      world.statics = [staticPod("a", "1"), staticPod("b", "1")];
      world.mirrors.wake();
      const other = await world.kube.next();
      assert.equal((other.body as { metadata: { name: string } }).metadata.name, "b");
      await other.json(mirrorPod("b", "1"), 201);
      world.mirrors.podSeen(mirrorPod("b", "1"));
      await world.kube.clock.advance(29_999);
      assert.ok(await world.kube.isQuiet());
      await world.kube.clock.advance(5000);
      assert.equal((await world.kube.next()).request.method, "POST");
    });
  });

  test("another cause is logged, too, and one that recurs after the pod was gone", async () => {
    await withWorld(async (world) => {
      world.statics = [staticPod("a", "1")];
      world.mirrors.podsKnown();
      await (await world.kube.next()).json(failure(403, "Forbidden", "exceeded quota"), 403);
      await world.kube.clock.advance(5000);
      await (await world.kube.next()).json(noNamespace, 404);
      assert.deepEqual(world.told, [
        "cannot create a mirror pod; the API server rejects it; fix what the error names; the static pod keeps running",
        "cannot create a mirror pod; its namespace does not exist; create the namespace ns",
      ]);
      world.statics = [];
      world.mirrors.wake();
      assert.ok(await world.kube.isQuiet());
      world.statics = [staticPod("a", "1")];
      await world.kube.clock.advance(60_000);
      await (await world.kube.next()).json(noNamespace, 404);
      assert.equal(world.told.length, 3);
    });
  });

  for (const [who, answer, status] of [
    ["of this node", mirrorPod("a", "1", { annotations: {} }), 200],
    ["that the node may not read", failure(403, "Forbidden", "can only get pods of this node"), 403],
  ] as const) {
    test(`a name that is taken by a pod ${who} is logged once, and retried in a minute`, async () => {
      await withWorld(async (world) => {
        world.statics = [staticPod("a", "1")];
        world.mirrors.podsKnown();
        for (let round = 0; round < 2; round++) {
          await (await world.kube.next()).json(taken, 409);
          const look = await world.kube.next();
          assert.equal(`${look.request.method} ${look.url.pathname}`, "GET /api/v1/namespaces/ns/pods/a");
          await look.json(answer, status);
          assert.deepEqual(world.told, [
            "cannot create a mirror pod; its name is taken by a pod that is not its mirror; " +
              "delete that pod, or rename the static pod or move it to another namespace",
          ]);
          await world.kube.clock.advance(60_000);
        }
        assert.equal((await world.kube.next()).request.method, "POST");
      });
    });
  }

  test("a taken name is used as soon as its pod is gone", async () => {
    await withWorld(async (world) => {
      world.statics = [staticPod("a", "1")];
      world.mirrors.podsKnown();
      await (await world.kube.next()).json(taken, 409);
      const holder = mirrorPod("a", "1", { uid: "holder", annotations: {} });
      await (await world.kube.next()).json(holder, 200);
      world.mirrors.podGone({ ...holder, metadata: { ...holder.metadata, name: "other" } });
      assert.ok(await world.kube.isQuiet());
      world.mirrors.podGone(holder);
      assert.equal((await world.kube.next()).request.method, "POST");
    });
  });

  test("an unreachable server is logged once, without a remedy, and retried soon", async () => {
    await withWorld(async (world) => {
      world.statics = [staticPod("a", "1")];
      world.mirrors.podsKnown();
      for (let round = 0; round < 2; round++) {
        (await world.kube.next()).fail(new Error("connection refused"));
        await world.kube.clock.advance(5000);
        assert.deepEqual(world.told, ["cannot create a mirror pod"]);
      }
    });
  });

  test("Retry-After is respected, also by a pod that is removed and added meanwhile", async () => {
    await withWorld(async (world) => {
      const pod = staticPod("a", "1");
      world.statics = [pod];
      world.mirrors.podsKnown();
      const busy = { kind: "Status", reason: "TooManyRequests", code: 429, details: { retryAfterSeconds: 30 } };
      await (await world.kube.next()).json(busy, 429);
      for (const statics of [[], [pod]]) {
        world.statics = statics;
        world.mirrors.wake();
        await world.kube.clock.advance(10_000);
        assert.ok(await world.kube.isQuiet());
      }
      await world.kube.clock.advance(15_000);
      assert.equal((await world.kube.next()).request.method, "POST");
    });
  });

  test("an existing mirror pod that the watch has not reported yet is not logged", async () => {
    await withWorld(async (world) => {
      world.statics = [staticPod("a", "1")];
      world.mirrors.podsKnown();
      await (await world.kube.next()).json(taken, 409);
      const mirror = mirrorPod("a", "1");
      await (await world.kube.next()).json({ ...mirror, spec: { ...mirror.spec, nodeName: "node1" } });
      assert.ok(await world.kube.isQuiet());
      assert.deepEqual(world.told, []);
    });
  });
});
