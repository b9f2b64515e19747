import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as z from "zod";
import { ScriptedKube, type ScriptedRequest } from "../../test/support/scripted-kube.ts";
import type { Logger } from "../ports/log.ts";
import { Reflector, reflectorDelayMs } from "./reflector.ts";
import { decoder } from "./resource.ts";
import { WatchNews } from "./watch-news.ts";

const Thing = z.object({
  metadata: z.object({ name: z.string(), uid: z.string().optional(), resourceVersion: z.string().optional() }),
  size: z.number().optional(),
});
type Thing = z.infer<typeof Thing>;
const things = { base: "/api/v1", plural: "things", kind: "Thing", decode: decoder(Thing, "Thing") };

const thing = (name: string, resourceVersion: string, more: object = {}): object => ({
  metadata: { name, resourceVersion, managedFields: [{ manager: "m" }] },
  ...more,
});
const event = (type: string, object: object): object => ({ type, object });
const bookmark = (resourceVersion: string, ends = false): object =>
  event("BOOKMARK", {
    metadata: { resourceVersion, ...(ends && { annotations: { "k8s.io/initial-events-end": "true" } }) },
  });
const status = (code: number, reason: string): object => ({ kind: "Status", code, reason, message: reason });

class World {
  readonly kube = new ScriptedKube();
  readonly seen: string[] = [];
  readonly logged: string[] = [];
  readonly #stop = new AbortController();
  readonly news: WatchNews;
  readonly ended: Promise<void>;

  constructor() {
    const log = (message: string, fields: object = {}): void =>
      void this.logged.push(`${message} ${JSON.stringify(fields)}`);
    const logger: Logger = { debug: log, info: log, warn: log, error: log, child: () => logger };
    const { clock } = this.kube;
    const random = { uniform: () => 0, bytes: (count: number) => new Uint8Array(count) };
    this.news = new WatchNews(clock, logger);
    const reflector = new Reflector(
      { client: this.kube.client(), clock, random, log: logger, news: this.news },
      { name: "things", resource: things, fieldSelector: "spec.nodeName=n" },
      {
        replaced: (objects, unread) => {
          const names = objects.map(({ metadata, size = "" }) => `${metadata.name}${size}`);
          this.seen.push(`all: ${[...names, ...unread.map((uid) => `unread ${uid}`)].join(" ")}`);
        },
        unreadGone: (uid) => this.seen.push(`gone unread ${uid}`),
        changed: (type, { metadata }: Thing) => this.seen.push(`${type} ${metadata.name}`),
      },
    );
    this.ended = reflector.run(this.#stop.signal);
  }

  async stop(): Promise<void> {
    this.#stop.abort(new Error("the test is over"));
    await this.ended;
    assert.deepEqual(this.kube.clock.waits, []);
  }

  /** The stream that a reflector begins with. */
  async initial(): Promise<ScriptedRequest> {
    const request = await this.kube.next();
    assert.equal(request.url.searchParams.get("sendInitialEvents"), "true");
    await request.open();
    return request;
  }

  /** Up to the watch from version 5. */
  async synced(): Promise<ScriptedRequest> {
    const request = await this.initial();
    await request.write(event("ADDED", thing("a", "3")), bookmark("5", true));
    return request;
  }
}

async function withWorld(work: (world: World) => Promise<void>): Promise<void> {
  const world = new World();
  await work(world);
  await world.stop();
}

describe("Reflector", () => {
  test("gets all objects by one stream, then the changes", async () => {
    await withWorld(async (world) => {
      const stream = await world.initial();
      assert.equal(stream.url.pathname, "/api/v1/things");
      assert.equal(stream.url.searchParams.get("fieldSelector"), "spec.nodeName=n");
      await stream.write(event("ADDED", thing("a", "3")), event("ADDED", thing("b", "4")));
      assert.deepEqual(world.seen, [], "not all is known yet");
      await stream.write(bookmark("5", true), event("MODIFIED", thing("a", "6")), event("DELETED", thing("b", "7")));
      assert.deepEqual(world.seen, ["all: a b", "MODIFIED a", "DELETED b"]);
    });
  });

  test("lists in pages if the server has no streaming lists", async () => {
    await withWorld(async (world) => {
      await (await world.kube.next()).json(status(422, "Invalid"), 422);
      await world.kube.clock.advance(2000);
      const first = await world.kube.next();
      assert.deepEqual([first.url.searchParams.get("limit"), first.url.searchParams.get("watch")], ["500", null]);
      await first.json({ metadata: { resourceVersion: "9", continue: "more" }, items: [thing("a", "1")] });
      const second = await world.kube.next();
      assert.equal(second.url.searchParams.get("continue"), "more");
      await second.json({ metadata: { resourceVersion: "9" }, items: [thing("b", "2")] });
      assert.deepEqual(world.seen, ["all: a b"]);
      const watch = await world.kube.next();
      assert.equal(watch.url.searchParams.get("resourceVersion"), "9");
    });
  });

  test("a server that never marks the end of the initial objects is listed", async () => {
    await withWorld(async (world) => {
      const stream = await world.initial();
      await stream.write(event("ADDED", thing("a", "3")), bookmark("4"));
      await world.kube.clock.advance(2000);
      assert.equal((await world.kube.next()).url.searchParams.get("limit"), "500");
    });
  });

  test("an ended watch continues from the last event or bookmark, at once if it had worked", async () => {
    await withWorld(async (world) => {
      const stream = await world.synced();
      await world.kube.clock.advance(60_000);
      await stream.write(event("MODIFIED", thing("a", "8")));
      await stream.end();
      const again = await world.kube.next();
      assert.equal(again.url.searchParams.get("resourceVersion"), "8");
      await again.open();
      await world.kube.clock.advance(60_000);
      await again.write(bookmark("20"));
      await again.end();
      assert.equal((await world.kube.next()).url.searchParams.get("resourceVersion"), "20");
    });
  });

  test("watches that end at once are reopened with a back-off", async () => {
    await withWorld(async (world) => {
      await (await world.synced()).end();
      for (const delayMs of [800, 1600, 3200, 6400, 10_000, 10_000]) {
        await world.kube.clock.advance(delayMs - 1);
        assert.ok(await world.kube.isQuiet(), `${delayMs}`);
        await world.kube.clock.advance(1);
        const request = await world.kube.next();
        await request.open();
        await request.end();
      }
    });
  });

  test("a server that ends watches at once counts as unreachable", async () => {
    await withWorld(async (world) => {
      await (await world.synced()).end();
      for (let round = 0; round < 3; round++) {
        await world.kube.clock.advance(10_000);
        const request = await world.kube.next();
        await request.open();
        await request.end();
      }
      assert.match(world.logged.join("\n"), /cannot list or watch .*the server ends the watch immediately/u);
      await world.kube.clock.advance(10_000);
      await (await world.kube.next()).open();
      await world.kube.clock.advance(1000);
      assert.match(world.logged.at(-1) ?? "", /^list and watch at the API server work again/u);
    });
  });

  test("a server with hanging requests is retried with a back-off", async () => {
    await withWorld(async (world) => {
      await (await world.synced()).end();
      for (const delayMs of [800, 1600, 3200, 6400, 10_000, 10_000]) {
        await world.kube.clock.advance(delayMs - 1);
        assert.ok(await world.kube.isQuiet(), `${delayMs}`);
        await world.kube.clock.advance(1);
        const request = await world.kube.next();
        // What a hanging request waits for has a deadline of its own.
        await world.kube.clock.advance(30_000);
        assert.ok(request.request.signal.aborted);
      }
    });
  });

  test("an expired version causes a relist", async () => {
    await withWorld(async (world) => {
      const stream = await world.synced();
      await stream.write(event("ERROR", status(410, "Expired")));
      await world.kube.clock.advance(1000);
      const again = await world.initial();
      await again.write(event("ADDED", thing("c", "30")), bookmark("31", true));
      assert.deepEqual(world.seen, ["all: a", "all: c"]);
    });
  });

  test("a server that returns without the version is relisted soon", async () => {
    await withWorld(async (world) => {
      await (await world.synced()).end();
      for (let failures = 1; failures < 6; failures++) {
        await world.kube.clock.advance(reflectorDelayMs(failures, 0));
        (await world.kube.next()).fail(new Error("connection refused"));
      }
      await world.kube.clock.advance(reflectorDelayMs(6, 0));
      await (await world.kube.next()).json(status(410, "Expired"), 410);
      await world.kube.clock.advance(1000);
      await (await world.initial()).write(bookmark("31", true), event("ERROR", status(410, "Expired")));
      await world.kube.clock.advance(1000);
      assert.ok(await world.kube.isQuiet(), "one that forgets again and again is not asked every second");
      await world.kube.clock.advance(1000);
      await world.initial();
    });
  });

  test("an event that can't be decoded causes a relist, and shows nothing of it", async () => {
    await withWorld(async (world) => {
      const stream = await world.synced();
      await stream.write('{"type":"ADDED","object":{"s3cret\n');
      await world.kube.clock.advance(1000);
      await (await world.initial()).write(bookmark("31", true));
      assert.deepEqual(world.seen, ["all: a", "all: "]);
      assert.match(world.logged.join("\n"), /characters that are not JSON/);
      assert.doesNotMatch(world.logged.join("\n"), /s3cret/);
    });
  });

  test("an object that does not fit is reported, and hides no other", async () => {
    await withWorld(async (world) => {
      const stream = await world.synced();
      await stream.write(event("ADDED", thing("bad", "6", { size: "s3cret" })), event("ADDED", thing("good", "7")));
      assert.deepEqual(world.seen, ["all: a", "ADDED good"]);
      assert.match(world.logged.join("\n"), /cannot decode .*"name":"bad".*Thing: size does not fit/);
      assert.doesNotMatch(world.logged.join("\n"), /s3cret/);
    });
  });

  test("an object that can no longer be decoded stays as it was, and one that never could be is logged", async () => {
    await withWorld(async (world) => {
      const stream = await world.initial();
      const with3 = (name: string, uid: string, size: unknown): object => ({ metadata: { name, uid }, size });
      await stream.write(event("ADDED", with3("a", "1", 1)), event("ADDED", with3("b", "2", 2)), bookmark("5", true));
      await stream.write(event("ERROR", status(410, "Expired")));
      await world.kube.clock.advance(1000);
      const again = await world.initial();
      await again.write(event("ADDED", with3("a", "1", "?")), event("ADDED", with3("b", "22", "?")));
      await again.write(event("ADDED", with3("c", "3", "?")), bookmark("9", true));
      assert.deepEqual(world.seen, ["all: a1 b2", "all: a1 unread 22 unread 3"]);
      await again.write(event("DELETED", with3("a", "1", "?")), event("DELETED", with3("c", "3", "?")));
      assert.deepEqual(world.seen.slice(2), ["DELETED a", "gone unread 3"]);
    });
  });

  test("an unidentifiable object invalidates its whole response", async () => {
    for (const nobody of [
      {},
      { metadata: {} },
      { metadata: { name: 7, uid: "1" } },
      { metadata: { name: "b" }, size: "?" },
    ]) {
      await withWorld(async (world) => {
        const stream = await world.synced();
        await stream.write(event("ERROR", status(410, "Expired")));
        await world.kube.clock.advance(1000);
        await (await world.initial()).write(event("ADDED", nobody), bookmark("9", true));
        assert.deepEqual(world.seen, ["all: a"], "a is not gone for this");
        await world.kube.clock.advance(2000);
        await (await world.initial()).write(event("ADDED", thing("a", "3")), bookmark("9", true));
        assert.deepEqual(world.seen, ["all: a", "all: a"]);
      });
    }
  });

  test("a watch that broke after it had lived has broken for the first time", async () => {
    await withWorld(async (world) => {
      let stream = await world.synced();
      for (let round = 0; round < 5; round++) {
        await world.kube.clock.advance(60_000);
        stream.fail(new Error("reset"));
        await world.kube.clock.advance(800);
        stream = await world.kube.next();
        await stream.open();
      }
      assert.equal(world.logged.filter((line) => /^(can't )?keeps? up/u.test(line)).length, 0);
    });
  });

  test("a response of another kind is neither a list nor an item", async () => {
    await withWorld(async (world) => {
      await (await world.kube.next()).json(status(422, "Invalid"), 422);
      await world.kube.clock.advance(2000);
      await (await world.kube.next()).json({ kind: "NodeList", metadata: { resourceVersion: "9" }, items: null });
      await world.kube.clock.advance(5000);
      assert.match(world.logged.join("\n"), /the list of things is a NodeList/);
      const items = [thing("a", "1"), { kind: "Node", metadata: { name: "b", uid: "2" } }];
      await (await world.kube.next()).json({ kind: "ThingList", metadata: { resourceVersion: "9" }, items });
      assert.deepEqual(world.seen, ["all: a unread 2"]);
      assert.match(world.logged.join("\n"), /"name":"b".*it is a Node/);
    });
  });

  test("events that are cut anywhere are put together", async () => {
    await withWorld(async (world) => {
      const stream = await world.synced();
      const bytes = `${JSON.stringify(event("ADDED", thing("ü", "6")))}\n`;
      for (const character of bytes) await stream.write(character);
      assert.deepEqual(world.seen, ["all: a", "ADDED ü"]);
    });
  });

  test("a restored server is relisted at once, or at the next request", async () => {
    await withWorld(async (world) => {
      const stream = await world.synced();
      await world.kube.clock.advance(60_000);
      world.news.storeRestored();
      await (await world.initial()).write(event("ADDED", thing("b", "2")), bookmark("4", true));
      assert.ok(stream.request.signal.aborted);
      assert.deepEqual(world.seen, ["all: a", "all: b"]);
    });
    await withWorld(async (world) => {
      (await world.synced()).fail(new Error("reset"));
      world.news.storeRestored();
      await world.kube.clock.advance(1000);
      await world.initial();
    });
  });

  test("a silent stream causes a relist: its version may be in a restored server's future", async () => {
    await withWorld(async (world) => {
      await world.synced();
      await world.kube.clock.advance(180_000);
      await (await world.initial()).write(event("ADDED", thing("b", "3")), bookmark("4", true));
      assert.deepEqual(world.seen, ["all: a", "all: b"]);
      await world.kube.clock.advance(180_000);
      await world.initial();
    });
  });

  test("a broken connection does not cause a relist", async () => {
    await withWorld(async (world) => {
      const stream = await world.synced();
      await world.kube.clock.advance(5000);
      stream.fail(new Error("reset"));
      await world.kube.clock.advance(800);
      assert.equal((await world.kube.next()).url.searchParams.get("resourceVersion"), "5");
      assert.deepEqual(world.seen, ["all: a"]);
    });
  });

  test("streams that break right after opening count as recovered only after one has lived for a while", async () => {
    await withWorld(async (world) => {
      let stream = await world.synced();
      await world.kube.clock.advance(5000);
      const isBack = (): boolean =>
        world.logged.some((line) => line.startsWith("list and watch at the API server work again"));
      for (let round = 0; round < 5; round++) {
        stream.fail(new Error("reset"));
        await world.kube.clock.advance(10_000);
        stream = await world.kube.next();
        await stream.open();
      }
      stream.fail(new Error("reset"));
      await world.kube.clock.advance(10_000);
      assert.equal(isBack(), false);
      stream = await world.kube.next();
      await stream.open();
      await world.kube.clock.advance(1000);
      assert.equal(isBack(), true);
    });
  });

  test("the waits grow to ten seconds, and are spread to their double", () => {
    assert.deepEqual(
      [1, 2, 10].map((failures) => reflectorDelayMs(failures, 0)),
      [800, 1600, 10_000],
    );
    assert.equal(reflectorDelayMs(10, 0.5), 15_000);
  });
});
