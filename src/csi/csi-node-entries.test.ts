import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { AnsweringKube } from "../../test/support/answering-kube.ts";
import { MemoryRecorder, silentLog } from "../../test/support/sources.ts";
import type { CsiNode, CsiNodeDriver } from "../api/csi-node.ts";
import type { KubeRequest } from "../ports/kube-api.ts";
import type { DriverOnNode } from "./csi-node-object.ts";
import { CsiNodePublisher } from "./csi-node-publisher.ts";

const { signal } = new AbortController();
const idsKey = "csi.volume.kubernetes.io/nodeid";

/** A publisher at an API server with a Node that is not ready, in which a test may have left a CSINode. */
class Scene {
  readonly kube = new AnsweringKube();
  readonly journal = new MemoryRecorder();
  readonly publisher: CsiNodePublisher;
  readonly #stop = new AbortController();

  constructor() {
    const { kube, journal } = this;
    const random = { uniform: () => 0, bytes: (count: number) => new Uint8Array(count) };
    const deps = { client: kube.client(), clock: kube.clock, random, journal, log: silentLog };
    this.publisher = new CsiNodePublisher({ ...deps, nodeName: "node1" });
    kube.create("nodes", { kind: "Node", metadata: { name: "node1" }, spec: {}, status: {} }, "u1");
  }

  /** An earlier run has published them. */
  listed(...drivers: CsiNodeDriver[]): void {
    const ownerReferences = [{ apiVersion: "v1", kind: "Node", name: "node1", uid: "u1" }];
    this.kube.create("csinodes", { metadata: { name: "node1", ownerReferences }, spec: { drivers } }, "c1");
  }

  async begin(): Promise<void> {
    void this.publisher.run(this.#stop.signal);
    const metadata = { name: "node1", uid: "u1", resourceVersion: "1" };
    this.publisher.registered({ metadata, spec: {}, status: {} });
    await this.kube.clock.advance(0);
  }

  /** The driver registers. @returns why that fails; undefined: it does not */
  async install(given: Partial<DriverOnNode> & { readonly name: string }): Promise<string | undefined> {
    return await this.#outcome(this.publisher.install(driver(given), signal));
  }

  async update(given: Partial<DriverOnNode> & { readonly name: string }): Promise<string | undefined> {
    return await this.#outcome(this.publisher.update(driver(given), signal));
  }

  get entries(): readonly CsiNodeDriver[] {
    return (this.kube.get("csinodes", "node1") as unknown as CsiNode | undefined)?.spec.drivers ?? [];
  }

  /** Names and node IDs in the CSINode. */
  get places(): readonly string[] {
    return this.entries.map(({ name, nodeID }) => `${name} ${nodeID}`);
  }

  async #outcome(work: Promise<void>): Promise<string | undefined> {
    const ended = work.then(
      () => undefined,
      (error: unknown) => String(error),
    );
    await this.kube.clock.advance(5000);
    return await ended;
  }
}

function driver(given: Partial<DriverOnNode> & { readonly name: string }): DriverOnNode {
  return { nodeId: "i-1", maxVolumes: 0n, topology: {}, ...given };
}

function writesCsiNodeWith(text: string): Scene["kube"]["refuses"] {
  return ({ method, path, body = "" }: KubeRequest) => {
    return method !== "GET" && path.includes("/csinodes") && body.includes(text) ? 422 : undefined;
  };
}

let scene: Scene;
beforeEach(() => {
  scene = new Scene();
});

test("a driver that comes back with another node ID or other topology keys is listed anew", async () => {
  for (const moved of [{ nodeId: "i-2" }, { topology: { "example.com/rack": "r1" } }]) {
    scene = new Scene();
    scene.listed({ name: "d", nodeID: "i-1", topologyKeys: ["example.com/zone"] }, { name: "other", nodeID: "o" });
    await scene.begin();
    const zone = { "example.com/zone": "z1" };
    assert.equal(await scene.install({ name: "d", topology: zone, ...moved }), undefined);
    const { nodeId = "i-1", topology = zone } = { topology: undefined, nodeId: undefined, ...moved };
    assert.deepEqual(scene.entries, [
      { name: "other", nodeID: "o" },
      { name: "d", nodeID: nodeId, topologyKeys: Object.keys(topology ?? zone) },
    ]);
    assert.equal(scene.publisher.problem, undefined);
  }
});

test("a driver that goes and comes back elsewhere before that is published is listed anew", async () => {
  scene.listed({ name: "d", nodeID: "i-1", topologyKeys: [] });
  await scene.begin();
  scene.publisher.uninstall("d");
  assert.equal(await scene.install({ name: "d", nodeId: "i-2" }), undefined);
  assert.deepEqual(scene.places, ["d i-2"]);
});

test("a driver whose entry the API server refuses is not registered, and holds up no other", async () => {
  await scene.begin();
  scene.kube.refuses = writesCsiNodeWith("i-bad");
  const refused = scene.install({ name: "bad", nodeId: "i-bad" });
  assert.equal(await scene.install({ name: "good" }), undefined);
  assert.match(
    (await refused) ?? "",
    /^Error: error updating CSINode object with CSI driver node info: .*refused with 422/u,
  );
  assert.deepEqual([scene.places, scene.publisher.problem], [["good i-1"], undefined]);
  scene.publisher.uninstall("bad");
  assert.equal(await scene.install({ name: "third" }), undefined);
  scene.publisher.uninstall("good");
  await scene.kube.clock.advance(100);
  assert.deepEqual(scene.places, ["third i-1"]);
  assert.equal(scene.kube.get("nodes", "node1")?.metadata.annotations?.[idsKey], '{"third":"i-1"}');
});

test("a refused driver is told to doctor and the journal once, until it is registered or has gone", async () => {
  await scene.begin();
  scene.kube.refuses = writesCsiNodeWith("i-bad");
  for (let registrations = 0; registrations < 2; registrations++) {
    await scene.install({ name: "d", nodeId: "i-bad" });
    scene.publisher.uninstall("d");
    await scene.kube.clock.advance(120_000);
    const [problem = "", ...others] = scene.publisher.unpublished;
    assert.match(problem, /^CSI driver d cannot be listed in the CSINode: .*refused with 422$/u);
    assert.deepEqual([others, scene.journal.messages("CSINodeNotPublished")], [[], [problem]]);
  }
  await scene.install({ name: "d" });
  assert.deepEqual(scene.publisher.unpublished, []);
  await scene.install({ name: "d", nodeId: "i-bad" });
  scene.publisher.uninstall("d");
  await scene.kube.clock.advance(301_000);
  assert.deepEqual(scene.publisher.unpublished, []);
});

test("labels that the API server refuses for one driver are no other's", async () => {
  await scene.begin();
  scene.kube.refuses = ({ body = "" }) => (body.includes("no label") ? 422 : undefined);
  const refused = await scene.install({ name: "bad", topology: { "example.com/zone": "no label!" } });
  assert.match(refused ?? "", /error updating Node object with CSI driver node info: .*refused with 422/u);
  scene.publisher.uninstall("bad");
  assert.equal(await scene.install({ name: "good", topology: { "example.com/rack": "r1" } }), undefined);
  assert.deepEqual(scene.kube.get("nodes", "node1")?.metadata.labels, { "example.com/rack": "r1" });
});

test("a refusal that is over after a moment fails no registration", async () => {
  await scene.begin();
  let tries = 0;
  scene.kube.refuses = ({ method, path }) =>
    method === "PUT" && path.includes("/csinodes") && ++tries < 4 ? 403 : undefined;
  assert.equal(await scene.install({ name: "d" }), undefined);
  assert.deepEqual([tries, scene.places, scene.publisher.unpublished], [4, ["d i-1"], []]);
});

test("a driver whose entry makes the API server fail holds up no other, and follows once it does not", async () => {
  await scene.begin();
  scene.kube.refuses = ({ method, body = "" }) => (method === "PUT" && body.includes("i-bad") ? 500 : undefined);
  assert.equal(await scene.install({ name: "bad", nodeId: "i-bad" }), undefined);
  assert.equal(await scene.install({ name: "good" }), undefined);
  assert.deepEqual(scene.places, ["good i-1"]);
  scene.kube.refuses = () => undefined;
  await scene.kube.clock.advance(11_000);
  assert.deepEqual([scene.places, scene.publisher.unpublished], [["good i-1", "bad i-bad"], []]);
});

test("a registration does not succeed by one failure of the API server, which may refuse the driver next", async () => {
  await scene.begin();
  let failures = 1;
  scene.kube.refuses = (request) => (failures-- > 0 ? 500 : writesCsiNodeWith("i-worse")(request));
  assert.match((await scene.install({ name: "worse", nodeId: "i-worse" })) ?? "", /refused with 422/u);
});

test("where nothing may be written, no driver registers, and the node is not ready until it may", async () => {
  scene.kube.refuses = ({ method }) => (method === "GET" ? undefined : 403);
  await scene.begin();
  assert.match((await scene.install({ name: "d" })) ?? "", /error updating CSINode object .*refused with 403/u);
  scene.publisher.uninstall("d");
  assert.match(scene.publisher.problem ?? "", /^failed to initialize CSINode: .*refused with 403/u);
  scene.kube.refuses = () => undefined;
  await scene.kube.clock.advance(20_000);
  assert.deepEqual([scene.publisher.problem, scene.places], [undefined, []]);
});

test("the node is ready with its CSINode, also if a driver of an earlier run cannot be listed any more", async () => {
  scene.listed({ name: "d", nodeID: "i-1", topologyKeys: [] });
  scene.kube.refuses = writesCsiNodeWith("i-bad");
  const refused = scene.install({ name: "d", nodeId: "i-bad" });
  await scene.begin();
  assert.match((await refused) ?? "", /refused with 422/u);
  assert.equal(scene.publisher.problem, undefined);
});

test("an API server that fails later is told to doctor, and the node stays ready", async () => {
  await scene.begin();
  scene.kube.refuses = () => 500;
  assert.equal(await scene.install({ name: "d" }), undefined, "it goes on in the background");
  assert.match(scene.publisher.unpublished.join("\n"), /^cannot publish the CSINode: .*refused with 500$/u);
  assert.equal(scene.publisher.problem, undefined);
  scene.kube.refuses = () => undefined;
  await scene.kube.clock.advance(20_000);
  assert.deepEqual([scene.places, scene.publisher.unpublished], [["d i-1"], []]);
});

test("a driver's new count is written to the CSINode only, whatever has become of the Node's labels", async () => {
  await scene.begin();
  const topology = { "example.com/zone": "z1", "example.com/rack": "r1" };
  await scene.install({ name: "d", topology, maxVolumes: 1n });
  const labels = { "example.com/zone": "changed", "example.com/rack": null };
  scene.kube.merge("nodes", "node1", { metadata: { labels } });
  scene.kube.requests.length = 0;
  assert.equal(await scene.update({ name: "d", topology, maxVolumes: 2n }), undefined);
  assert.deepEqual([scene.entries.map(({ allocatable }) => allocatable), scene.places], [[{ count: 2 }], ["d i-1"]]);
  assert.deepEqual(
    scene.kube.requests.filter((request) => request.includes("/nodes")),
    [],
  );
  assert.equal(await scene.install({ name: "other" }), undefined);
  assert.deepEqual(scene.places, ["d i-1", "other i-1"]);
  assert.deepEqual(scene.kube.get("nodes", "node1")?.metadata.labels, { "example.com/zone": "changed" });
});

test("an answer that is more than another count, or that comes from a driver that has gone, changes nothing", async () => {
  await scene.begin();
  await scene.install({ name: "d", maxVolumes: 1n });
  for (const nodeId of ["i-2", ""]) {
    const problem = await scene.update({ name: "d", nodeId, maxVolumes: 2n });
    assert.match(
      problem ?? "",
      /CSI driver d registered with node ID "i-1", topology keys \[\], and now answers node ID/u,
    );
  }
  assert.deepEqual(scene.entries, [{ name: "d", nodeID: "i-1", topologyKeys: [], allocatable: { count: 1 } }]);
  scene.publisher.uninstall("d");
  assert.match((await scene.update({ name: "d" })) ?? "", /CSI driver d was deregistered meanwhile/u);
  assert.deepEqual(scene.places, []);
});

test("a count that the API server refuses leaves the driver registered, and the next one is tried", async () => {
  await scene.begin();
  await scene.install({ name: "d", maxVolumes: 1n });
  scene.kube.refuses = writesCsiNodeWith('"count":2');
  assert.match((await scene.update({ name: "d", maxVolumes: 2n })) ?? "", /refused with 422/u);
  assert.equal(await scene.update({ name: "d", maxVolumes: 3n }), undefined);
  assert.deepEqual([scene.entries[0]?.allocatable, scene.publisher.unpublished], [{ count: 3 }, []]);
});

test("a count that comes before the driver is published is published with it", async () => {
  const registered = scene.install({ name: "d", maxVolumes: 1n, topology: { "example.com/zone": "z1" } });
  const counted = scene.publisher.update(
    driver({ name: "d", maxVolumes: 2n, topology: { "example.com/zone": "z1" } }),
    signal,
  );
  await scene.begin();
  assert.deepEqual([await registered, await counted], [undefined, undefined]);
  assert.deepEqual(scene.entries[0]?.allocatable, { count: 2 });
  assert.deepEqual(scene.kube.get("nodes", "node1")?.metadata.labels, { "example.com/zone": "z1" });
});

test("a removal that the API server refuses is told, and repeated", async () => {
  await scene.begin();
  await scene.install({ name: "d" });
  scene.kube.refuses = ({ method }) => (method === "PUT" ? 403 : undefined);
  scene.publisher.uninstall("d");
  await scene.kube.clock.advance(5000);
  assert.match(scene.publisher.unpublished.join("\n"), /^CSI driver d cannot be removed from the CSINode: .*403$/u);
  scene.kube.refuses = () => undefined;
  await scene.kube.clock.advance(120_000);
  assert.deepEqual([scene.places, scene.publisher.unpublished], [[], []]);
});

test("a CSINode that somebody has deleted returns with all drivers", async () => {
  await scene.begin();
  await scene.install({ name: "d" });
  scene.kube.delete("csinodes", "node1");
  await scene.install({ name: "e" });
  assert.deepEqual(scene.places, ["d i-1", "e i-1"]);
});
