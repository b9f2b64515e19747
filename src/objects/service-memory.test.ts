import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock, settle } from "../../test/support/manual-clock.ts";
import { podWith } from "../../test/support/pods.ts";
import { silentLog } from "../../test/support/sources.ts";
import { FileError } from "../ports/files.ts";
import { NotKnownYetError } from "../runtime/config/container-config-error.ts";
import type { ApiObjects } from "./api-objects.ts";
import { Collection } from "./collection.ts";
import { PodObjects } from "./pod-objects.ts";
import type { ServiceAccountTokens } from "./service-account-tokens.ts";
import { ServiceMemory } from "./service-memory.ts";
import type { Service } from "./service-variables.ts";

const kubernetes: Service = {
  metadata: { name: "kubernetes", namespace: "default" },
  spec: { clusterIP: "10.0.0.1", ports: [{ port: 443 }] },
};
const path = "/root/podwright/services.json";

/** One life of podwright on a disk. */
class World {
  readonly clock = new ManualClock();
  readonly services = new Collection<Service>();
  readonly memory: ServiceMemory;
  readonly #stop = new AbortController();
  readonly #ended: Promise<void>;

  constructor(disk: Map<string, string>) {
    const read = async (name: string): Promise<Uint8Array> => {
      const text = disk.get(name);
      if (text === undefined) throw new FileError("ENOENT", name, "no such file");
      return new TextEncoder().encode(text);
    };
    const writeAtomic = async (name: string, data: string | Uint8Array, mode: number): Promise<void> => {
      assert.equal(mode, 0o600);
      disk.set(name, String(data));
    };
    const deps = { clock: this.clock, files: { read, writeAtomic }, log: silentLog };
    this.memory = new ServiceMemory(deps, path, this.services);
    this.#ended = this.memory.run(this.#stop.signal);
  }

  /** Names of the variables that a container gets. */
  variables(pod = podWith({ containers: [{ name: "c" }] })): string[] {
    const known = { services: this.services, memory: this.memory };
    const nothing: unknown = {};
    const objects = nothing as ApiObjects;
    const tokens = nothing as ServiceAccountTokens;
    return new PodObjects(this.clock, objects, tokens, () => undefined, known)
      .serviceVariables(pod)
      .map(({ name }) => name);
  }

  async end(): Promise<void> {
    this.#stop.abort(new Error("the test is over"));
    await this.#ended;
    assert.deepEqual(this.clock.waits, []);
  }
}

test("no container is made before services are known, but those of static pods", async () => {
  const world = new World(new Map());
  await settle();
  const words = /^services have not yet been read at least once, cannot construct envvars$/;
  assert.throws(
    () => world.variables(),
    (error: Error) => error instanceof NotKnownYetError && words.test(error.message),
  );
  const annotations = { "kubernetes.io/config.source": "file" };
  assert.deepEqual(world.variables(podWith({ containers: [{ name: "c" }] }, { annotations })), []);
  world.services.replaced([kubernetes]);
  assert.ok(world.variables().includes("KUBERNETES_SERVICE_HOST"));
  await world.end();
});

test("the next run knows the last run's services until the server lists them", async () => {
  const disk = new Map<string, string>();
  const first = new World(disk);
  await settle();
  await first.clock.advance(60_000);
  assert.equal(disk.size, 0, "nothing known is nothing to remember");
  first.services.replaced([]);
  await settle();
  assert.equal(disk.get(path), "[]", "at once");
  first.services.changed("ADDED", kubernetes);
  await first.clock.advance(60_000);
  await first.end();
  const second = new World(disk);
  await second.memory.known;
  assert.ok(second.variables().includes("KUBERNETES_SERVICE_HOST"));
  second.services.replaced([]);
  assert.deepEqual(second.variables(), []);
  await second.end();
});

test("unreadable records of the last run are ignored", async () => {
  const world = new World(new Map([[path, '[{"metadata": 1}]']]));
  await settle();
  assert.throws(() => world.variables(), NotKnownYetError);
  await world.end();
});
