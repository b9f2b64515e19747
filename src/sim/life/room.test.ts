import assert from "node:assert/strict";
import { test } from "node:test";
import { ClusterScene } from "../../../test/support/sim-cluster-scene.ts";
import { podOf, runs, Scene } from "../../../test/support/sim-scene.ts";
import type { Pod } from "../../api/pod.ts";
import { Emitter } from "../../base/emitter.ts";
import { type PodUid, podUid } from "../../base/ids.ts";
import { Semaphore } from "../../base/semaphore.ts";
import { eventsOf } from "../../events/entry-events.ts";
import type { Cause } from "../../journal/entry.ts";
import type { Room, RoomServices } from "../../kubelet/room.ts";
import type { Registry } from "../../metrics/registry.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Files } from "../../ports/files.ts";
import { podRef } from "../../runtime/pod-ref.ts";
import { fieldsAt, listAt } from "../api-server/values.ts";
import type { RoomParts } from "./node-settings.ts";

const directory = "/var/lib/kubelet/licences";
const wantsLicence = (pod: Pod): boolean => pod.metadata.annotations?.["example.org/licence"] === "wanted";

/** A room of this test: it lends a node's few licences to pods that request one, and takes them back. */
class Licences implements Room {
  readonly #files: Files;
  readonly #clock: Clock;
  readonly #record: RoomParts["record"];
  readonly #revoked: Revoked;
  readonly #lent = new Map<PodUid, number>();
  readonly #count: number;
  readonly #turn = new Semaphore(1);
  #services: RoomServices | undefined;

  constructor({ record, ports }: RoomParts, revoked: Revoked, count: number) {
    this.#files = ports.files;
    this.#clock = ports.clock;
    this.#record = record;
    this.#count = count;
    this.#revoked = revoked;
  }

  /** Licences lent by an earlier run. An unreadable file costs its own pod the licence. */
  async load(): Promise<void> {
    for (const { name } of await this.#files.list(directory)) {
      const bytes = await this.#files.read(`${directory}/${name}`, 10).catch(() => undefined);
      const number = Number(bytes && new TextDecoder().decode(bytes));
      if (Number.isInteger(number)) this.#lent.set(podUid(name), number);
    }
  }

  connect(services: RoomServices): void {
    this.#services = services;
  }

  readonly admit: NonNullable<Room["admit"]> = (pod) => {
    if (!wantsLicence(pod) || this.#lent.has(podUid(pod.metadata.uid)) || this.#lent.size < this.#count) return;
    return { reason: "UnexpectedAdmissionError", message: "no licence is left" };
  };

  reserve(pod: Pod): void {
    const uid = podUid(pod.metadata.uid);
    if (!wantsLicence(pod) || this.#lent.has(uid)) return;
    const taken = new Set(this.#lent.values());
    this.#lent.set(uid, Array.from({ length: this.#count }, (_, index) => index).find((n) => !taken.has(n)) ?? -1);
  }

  readonly resources: NonNullable<Room["resources"]> = {
    name: "licences",
    edits: ({ metadata }) => {
      const number = this.#lent.get(podUid(metadata.uid));
      return number === undefined ? {} : { annotations: { "example.org/licence-number": String(number) } };
    },
  };

  readonly holding: NonNullable<Room["holding"]> = {
    name: "licence",
    until: "ended",
    release: async ({ uid }) => {
      // `run` may be writing it.
      using _turn = await this.#turn.acquire();
      this.#lent.delete(podUid(uid));
      await this.#files.remove(`${directory}/${uid}`);
    },
    leftovers: {
      what: "RemoveLeftovers",
      uids: async () => (await this.#files.list(directory)).map(({ name }) => podUid(name)),
    },
  };

  /** Stores the lent licences, and ends a pod whose licence was revoked. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      for (const [uid, number] of [...this.#lent]) {
        await this.#keep(uid, number);
        if ((await this.#files.stat(`/var/lib/kubelet/revoked-${number}`)) !== undefined) this.#revoke(uid);
      }
      await this.#clock.sleep("a look at licences", 1000, signal).catch(() => {});
    }
  }

  async #keep(uid: PodUid, number: number): Promise<void> {
    using _turn = await this.#turn.acquire();
    if (!this.#lent.has(uid)) return;
    await this.#files.makeDirectory(directory, 0o700);
    await this.#files.write(`${directory}/${uid}`, String(number), 0o600);
  }

  #revoke(uid: PodUid): void {
    const pod = this.#services?.pods.get(uid);
    if (pod === undefined || this.#services?.workers === undefined) return;
    const because: Cause = { code: "ObjectsChanged", message: "the licence was revoked" };
    const message = "The pod's licence was revoked";
    const entry = this.#record({ kind: "decision", what: "Evicted", message, pod: podRef(pod), cause: because });
    this.#revoked.add([]);
    const cause: Cause = { code: "Evicted", message, entry, because };
    void this.#services.killer.kill(pod, {
      cause,
      outcome: "failed",
      lasts: true,
      graceSeconds: 1,
      disruption: message,
    });
  }
}

type Revoked = ReturnType<typeof revokedCounter>;

function revokedCounter(registry: Registry) {
  return registry.counter("example_licences_revoked_total", "Licences that were taken from pods", []);
}

class LicenceScene extends Scene {
  constructor(count: number) {
    let revoked: Revoked | undefined;
    super({}, undefined, (parts, registry) => [new Licences(parts, (revoked ??= revokedCounter(registry)), count)]);
  }

  add(name: string): void {
    this.node.add(this.pod(name));
  }

  pod(name: string): Pod {
    const pod = podOf({ containers: [runs("main")] }, name, name);
    return { ...pod, metadata: { ...pod.metadata, annotations: { "example.org/licence": "wanted" } } };
  }

  told(uid: string): readonly (string | undefined)[] {
    const status = this.status(uid);
    return [status?.phase, status?.reason, status?.message];
  }

  async lent(): Promise<string[]> {
    return (await this.node.files.list(directory)).map(({ name }) => name);
  }
}

test("an additional room admits pods, edits containers, holds resources and ends pods, also over a restart", async () => {
  const scene = new LicenceScene(1);
  scene.add("first");
  await scene.pass(10_000);
  const licence = scene.container("main").config.annotations["example.org/licence-number"];
  assert.deepEqual([scene.told("first")[0], licence, await scene.lent()], ["Running", "0", ["first"]]);
  scene.add("second");
  await scene.pass(10_000);
  assert.deepEqual(scene.told("second").slice(0, 2), ["Failed", "UnexpectedAdmissionError"]);
  assert.match(scene.told("second")[2] ?? "", /no licence is left/u);

  scene.node.kill();
  scene.node.start();
  await scene.pass(10_000);
  assert.equal(scene.told("first")[0], "Running");
  await scene.node.files.write("/var/lib/kubelet/revoked-0", "", 0o600);
  await scene.pass(30_000);
  assert.deepEqual(scene.told("first"), ["Failed", "Evicted", "The pod's licence was revoked"]);
  const conditions = scene.status("first")?.conditions ?? [];
  assert.equal(conditions.find(({ type }) => type === "DisruptionTarget")?.status, "True");
  assert.deepEqual(await scene.lent(), []);

  const evicted = scene.node.entries.filter(({ what, pod }) => what === "Evicted" && pod?.uid === "first");
  assert.deepEqual(
    evicted.flatMap(eventsOf).map(({ reason }) => reason),
    ["Evicted"],
  );
  assert.deepEqual(scene.counted("example_licences_revoked_total"), ["1"]);

  const first = scene.pod("first");
  scene.node.update({ ...first, metadata: { ...first.metadata, labels: { changed: "after its end" } } });
  await scene.pass(10_000);
  assert.deepEqual(await scene.lent(), [], "a pod that has ended holds nothing");
});

test("a pod that returns under its UID while it ends needs every room's admission", async () => {
  for (const opensAgain of [true, false]) {
    let isOpen = true;
    const closed = { reason: "UnexpectedAdmissionError", message: "the room is closed" } as const;
    const scene = new Scene({}, undefined, () => [{ admit: () => (isOpen ? undefined : closed) }]);
    const pod = podOf({ containers: [runs("main")] });
    scene.node.add(pod);
    await scene.pass(10_000);
    const { uid } = pod.metadata;
    isOpen = false;
    scene.node.remove(uid);
    isOpen = opensAgain;
    scene.node.add(pod);
    await scene.pass(60_000);
    assert.equal(scene.world.running(uid, "main") !== undefined, opensAgain);
    assert.equal(scene.status(uid)?.phase, opensAgain ? "Running" : "Failed");
  }
});

test("a pod is resized once every room would admit it", async () => {
  let isOpen = true;
  const closed = { reason: "UnexpectedAdmissionError", message: "the room is closed" } as const;
  const scene = new Scene({}, undefined, () => [{ admit: () => (isOpen ? undefined : closed) }]);
  const asking = (cpu: string): Pod => podOf({ containers: [runs("main", { resources: { requests: { cpu } } })] });
  scene.node.add(asking("100m"));
  await scene.pass(10_000);
  isOpen = false;
  scene.node.update(asking("200m"));
  await scene.pass(10_000);
  const told = (): (string | undefined)[] =>
    ["ResizeDeferred", "ResizeStarted"].flatMap((what) => scene.entries(what).map(({ message }) => message));
  assert.deepEqual(told(), [closed.message]);
  isOpen = true;
  await scene.pass(3 * 60_000);
  assert.deepEqual(told(), [closed.message, "the requested resources are allocated"]);
});

test("an orphan's holdings of a room are released with it", async () => {
  const scene = new LicenceScene(2);
  scene.add("first");
  await scene.pass(10_000);
  scene.node.kill();
  scene.node.desired.clear();
  scene.node.start();
  await scene.pass(120_000);
  assert.deepEqual([scene.node.pods().length, await scene.lent()], [0, []]);
});

test("a room's problem makes the node NotReady, and is reported at once", async () => {
  const changes = new Emitter();
  let problem: string | undefined;
  const node = {
    get problem() {
      return problem;
    },
    onChange: (listener: () => void) => changes.on(listener),
  };
  const scene = new ClusterScene(() => [{ node }]);
  scene.node.start();
  await scene.pass(30_000);
  const ready = (): readonly unknown[] => {
    const [object] = scene.cluster.server.registry.store.list("nodes");
    const conditions = listAt(fieldsAt(object?.value ?? {}, "status"), "conditions");
    const condition = conditions.find(({ type }) => type === "Ready");
    return [condition?.["status"], condition?.["message"]];
  };
  assert.deepEqual(ready(), ["True", "kubelet is posting ready status"]);
  for (const [next, told] of [
    ["node is shutting down", ["False", "node is shutting down"]],
    [undefined, ["True", "kubelet is posting ready status"]],
  ] as const) {
    problem = next;
    changes.emit();
    await scene.pass(500);
    assert.deepEqual(ready(), told);
  }
});
