import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeEngine } from "../../test/support/fake-engine.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { podView } from "../../test/support/pod-views.ts";
import { podWith } from "../../test/support/pods.ts";
import { silentLog } from "../../test/support/sources.ts";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { podUid } from "../base/ids.ts";
import { ProbeResults } from "../prober/probe-results.ts";
import type { NodeGauges } from "./gauges.ts";
import { NodePage } from "./node-page.ts";
import { isDataPath, pageRoutes } from "./routes.ts";
import type { ChangeEvent, GaugesEvent, HelloEvent } from "./view.ts";

class World {
  readonly clock = new ManualClock();
  readonly engine = new FakeEngine();
  readonly samples: boolean[] = [];
  readonly page: NodePage;
  readonly #end = new AbortController();

  constructor() {
    const gauges: NodeGauges = {
      sample: async (withPods) => {
        this.samples.push(withPods);
        return { capacity: { cpuCores: 2 }, cpuSeconds: this.samples.length, pods: new Map() };
      },
    };
    this.page = new NodePage({
      ...{ clock: this.clock, log: silentLog, nodeName: "node-1", localApi: this.engine },
      known: () =>
        [...this.engine.views.values()].map((view) => ({ pod: podWith({}, { uid: view.uid }), status: undefined })),
      probes: new ProbeResults(),
    });
    this.page.measureWith(gauges);
  }

  get signal(): AbortSignal {
    return this.#end.signal;
  }

  /** The next event, for which so much time passes. */
  async next(events: AsyncIterator<string>, ms: number): Promise<{ readonly event: string; readonly data: unknown }> {
    const next = events.next();
    await this.clock.advance(ms);
    const { value } = await next;
    const [, event = "", data = ""] = /^event: (\w+)\ndata: (.*)\n\n$/.exec(String(value)) ?? [];
    return { event, data: JSON.parse(data) };
  }

  end(): void {
    this.#end.abort();
    this.engine.end();
  }
}

test("a page receives everything once, and then only changes", async () => {
  const world = new World();
  world.engine.views.set("uid-web", podView({}));
  const events = world.page.events(world.signal);
  const hello = await world.next(events, 0);
  assert.equal(hello.event, "hello");
  const { node, pods } = hello.data as HelloEvent;
  assert.equal(node.name, "node-1");
  assert.deepEqual(
    pods.map(({ name, word }) => [name, word]),
    [["web", "Running"]],
  );

  const quiet = await world.next(events, 2200);
  assert.equal(quiet.event, "change");
  assert.deepEqual(Object.keys(quiet.data as ChangeEvent), ["now"]);

  world.engine.views.set("uid-db", podView({ name: "db" }));
  world.engine.views.delete("uid-web");
  const change = (await world.next(events, 2200)).data as ChangeEvent;
  assert.deepEqual(
    change.pods?.map(({ uid }) => uid),
    ["uid-db"],
  );
  assert.deepEqual(change.gone, ["uid-web"]);
  world.end();
  assert.equal((await events.next()).done, true);
});

test("a journal entry is sent after a moment, not at the next poll", async () => {
  const world = new World();
  world.engine.views.set("uid-web", podView({}));
  const events = world.page.events(world.signal);
  await world.next(events, 0);
  const pod = { namespace: "default", name: "web", uid: podUid("uid-web") };
  const next = world.next(events, 200);
  world.engine.record({ kind: "observation", what: "ContainerDied", message: "it died", pod });
  const change = (await next).data as ChangeEvent;
  assert.deepEqual(
    change.pods?.map(({ uid, entries }) => [uid, entries]),
    [["uid-web", 1]],
  );
  world.end();
});

test("the node's gauges are always collected, pods' only while a page is open and shortly afterwards", async () => {
  const world = new World();
  const running = world.page.run(world.signal);
  await world.clock.advance(25_000);
  assert.deepEqual(world.samples, [false, false, false]);
  const closed = new AbortController();
  const events = world.page.events(closed.signal);
  await world.next(events, 0);
  await world.clock.advance(2500);
  assert.deepEqual(world.samples.slice(3), [true, true]);
  const reading = (await world.next(events, 0)).data as GaugesEvent;
  assert.equal(reading.node.cpuCores !== undefined, true);
  closed.abort();
  await events.return?.(undefined);
  await world.clock.advance(20 * 60_000);
  assert.equal(world.samples.at(-1), false);
  world.end();
  await running;
});

test("pages beyond the limit are rejected until one is closed", async () => {
  const world = new World();
  const route = pageRoutes(world.page, async () => new Map());
  const open: AsyncIterator<string>[] = [];
  const ask = async () =>
    await route({
      ...{ method: "GET", path: "/ui/api/events", query: new URLSearchParams(), signal: world.signal },
      body: async () => "",
    });
  for (let count = 0; count < 16; count++) {
    const events = ((await ask()).body as AsyncIterable<string>)[Symbol.asyncIterator]();
    await world.next(events, 0);
    open.push(events);
  }
  assert.equal((await ask()).status, 503);
  await open[0]?.return?.(undefined);
  assert.equal((await ask()).status, 200);
  world.end();
});

test("a pod's timeline is found by its UID; other paths are not found", async () => {
  const world = new World();
  const pod = { namespace: "default", name: "web", uid: podUid("uid-web") };
  world.engine.record({ kind: "input", what: "PodAdded", message: "a file asks for <b>web</b>\u202e", pod });
  const route = pageRoutes(
    world.page,
    async () => new Map([["index.html", { contentType: "text/html", text: "page" }]]),
  );
  const ask = async (path: string, method = "GET") => {
    const response = await route({
      ...{ method, path, query: new URLSearchParams(), signal: world.signal },
      body: async () => "",
    });
    return [response.status, response.body as string] as const;
  };
  const [status, body] = await ask("/ui/api/pods/uid-web/life");
  assert.equal(status, 200);
  const { lines } = JSON.parse(body) as { readonly lines: readonly { readonly text: string }[] };
  assert.equal(lines[0]?.text, "a file asks for <b>web</b>\\u202e");
  assert.deepEqual(await ask("/ui/"), [200, "page"]);
  assert.equal((await ask("/ui"))[0], 308);
  for (const path of [
    "/ui/api/pods/none/life",
    "/ui/api/pods/%zz/life",
    "/ui/api/",
    "/ui/../etc/passwd",
    "/ui/none.js",
  ]) {
    assert.equal((await ask(path))[0], 404, path);
  }
  assert.equal((await ask("/ui/", "POST"))[0], 405);
  assert.equal((await ask("/ui/api/events", "POST"))[0], 405);
  assert.equal(isDataPath("/ui/api/events"), true);
  world.end();
});

test("a page previews evictions and garbage collection, removals first, and passes on why there is none", async () => {
  const world = new World();
  const routes = pageRoutes(world.page, async () => new Map());
  const ask = async (path: string): Promise<{ readonly status: number; readonly body: unknown }> => {
    const url = new URL(path, "http://page");
    const request = { path: url.pathname, query: url.searchParams, body: async () => "" };
    const { status, body } = await routes({ method: "GET", ...request, signal: world.signal });
    assert.ok(typeof body === "string");
    return { status, body: JSON.parse(body) };
  };
  world.engine.views.set("uid-web", podView({}));
  const [pod] = world.engine.pods();
  const ranked = { namespace: pod?.namespace, name: pod?.name, place: "uses 1Mi", evictable: true };
  assert.deepEqual(await ask("/ui/api/evictions?signal=nodefs.available"), {
    status: 200,
    body: { signal: "nodefs.available", standing: "nodefs.available is 1Gi of 2Gi", pods: [ranked] },
  });
  const image = { kind: "image", name: "busybox:1.36", bytes: 4096 } as const;
  const used = { kind: "image", name: "web:1", stays: "in use" } as const;
  world.engine.garbage = {
    items: [
      { ...used, id: "2" },
      { ...image, id: "1" },
    ],
    failures: [],
  };
  assert.deepEqual(await ask("/ui/api/garbage"), { status: 200, body: { items: [image, used] } });
  world.engine.evictionProblem = new PodwrightError(ExitCode.badInput, "this node evicts no pods");
  assert.deepEqual(await ask("/ui/api/evictions"), { status: 400, body: { error: "this node evicts no pods" } });
  world.end();
});

test("a pod on the node has a life also if the journal has no entry of it any more", () => {
  const world = new World();
  world.engine.views.set("uid-web", podView({}));
  const { subjects, lines, truncated } = world.page.life(podUid("uid-web")) ?? {};
  assert.deepEqual([subjects, lines, truncated], [[], [], true]);
  assert.equal(world.page.life(podUid("uid-stranger")), undefined);
  world.end();
});
