import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { podWith } from "../../test/support/pods.ts";
import { MemoryRecorder } from "../../test/support/sources.ts";
import type { ReflectorHandler, ReflectorTarget } from "../api-client/reflector.ts";
import type { ApiObject } from "../api-client/resource.ts";
import type { Pod } from "../api/pod.ts";
import { podUid } from "../base/ids.ts";
import { ApiObjects } from "./api-objects.ts";

interface Watch {
  readonly name: string;
  readonly signal: AbortSignal;
  readonly set: (...objects: readonly object[]) => void;
  readonly remove: (object: object) => void;
}

class World {
  readonly journal = new MemoryRecorder();
  readonly watches: Watch[] = [];
  readonly changed: string[] = [];
  readonly objects = new ApiObjects({
    journal: this.journal,
    objectsChanged: (objects) => this.changed.push(...objects.map(({ kind, name }) => `${kind} ${name}`)),
    watch: async <T extends ApiObject>(
      { name, resource }: ReflectorTarget<T>,
      handler: ReflectorHandler<T>,
      signal: AbortSignal,
    ) => {
      this.watches.push({
        name,
        signal,
        set: (...objects) =>
          handler.replaced(
            objects.map((object) => resource.decode(object)),
            [],
          ),
        remove: (object) => handler.changed("DELETED", resource.decode(object)),
      });
    },
  });

  watch(name: string): Watch {
    const found = this.watches.findLast((watch) => watch.name === name);
    assert.ok(found, `${name} is watched`);
    return found;
  }
}

function pod(uid: string, configMap: string, secret?: string): Pod {
  const volumes = [
    { name: "c", configMap: { name: configMap } },
    ...(secret === undefined ? [] : [{ name: "s", secret: { secretName: secret } }]),
  ];
  return podWith({ volumes }, { uid });
}
const settings = (data: Readonly<Record<string, string>>, more: object = {}): object => ({
  metadata: { name: "settings", namespace: "ns" },
  data,
  ...more,
});

describe("ApiObjects", () => {
  test("until the server responds it is unknown whether an object exists", async () => {
    const { objects, watch, changed } = bound(new World());
    objects.add(pod("u", "settings"));
    assert.throws(() => objects.configMap("ns", "settings"), /failed to sync configmap cache: .*not known yet/);
    const known = objects.known("ns", pod("u", "settings").spec);
    watch("ConfigMap ns/settings").set(settings({ a: "1" }));
    await known;
    assert.equal(objects.configMap("ns", "settings")?.data.get("a"), "1");
    assert.deepEqual(changed, ["ConfigMap settings"]);
    watch("ConfigMap ns/settings").remove(settings({}));
    assert.equal(objects.configMap("ns", "settings"), undefined);
  });

  test("every valid key is kept, also one that JavaScript has a meaning for", () => {
    const { objects, watch } = bound(new World());
    objects.add(pod("u", "settings", "token"));
    const data = '{"__proto__": "YQ==", "constructor": "YQ=="}';
    const stored = (name: string): object => JSON.parse(`{"metadata": {"name": "${name}"}, "data": ${data}}`);
    watch("ConfigMap ns/settings").set(stored("settings"));
    watch("Secret ns/token").set(stored("token"));
    const keys = ["__proto__", "constructor"];
    assert.deepEqual([...(objects.configMap("ns", "settings")?.data.keys() ?? [])], keys);
    assert.deepEqual([...(objects.secret("ns", "token")?.data.keys() ?? [])], keys);
    for (const wrong of [{ a: 1 }, ["a"], "a", null]) {
      assert.throws(
        () => watch("ConfigMap ns/settings").set({ metadata: { name: "settings" }, data: wrong }),
        /data does not fit/,
      );
    }
  });

  test("equal content keeps its identity", () => {
    const { objects, watch, changed } = bound(new World());
    objects.add(pod("u", "settings"));
    watch("ConfigMap ns/settings").set(settings({ a: "1" }));
    const before = objects.configMap("ns", "settings");
    watch("ConfigMap ns/settings").set(settings({ a: "1" }));
    assert.equal(objects.configMap("ns", "settings"), before);
    assert.equal(changed.length, 1);
  });

  test("an object is watched once for all its pods, and no longer than there are any", () => {
    const { objects, watch, world } = bound(new World());
    objects.add(pod("u", "settings"));
    objects.add(pod("v", "settings", "hidden"));
    assert.equal(world.watches.length, 2);
    objects.remove(podUid("u"));
    assert.equal(watch("ConfigMap ns/settings").signal.aborted, false);
    objects.remove(podUid("v"));
    assert.ok(world.watches.every(({ signal }) => signal.aborted));
    assert.equal(objects.size, 0);
  });

  test("a pod that refers to another object releases the first", () => {
    const { objects, watch } = bound(new World());
    objects.add(pod("u", "settings"));
    objects.add(pod("u", "others"));
    assert.ok(watch("ConfigMap ns/settings").signal.aborted);
    assert.equal(watch("ConfigMap ns/others").signal.aborted, false);
  });

  test("an immutable object is no longer watched, and stays known", () => {
    const { objects, watch } = bound(new World());
    objects.add(pod("u", "settings"));
    watch("ConfigMap ns/settings").set(settings({ a: "1" }, { immutable: true }));
    assert.ok(watch("ConfigMap ns/settings").signal.aborted);
    assert.equal(objects.configMap("ns", "settings")?.data.get("a"), "1");
  });

  test("a Secret's content is decoded, and stays out of the journal", () => {
    const { objects, watch, world } = bound(new World());
    objects.add(pod("u", "settings", "hidden"));
    const data = { key: Buffer.from("s3cret").toString("base64") };
    watch("Secret ns/hidden").set({ metadata: { name: "hidden" }, data });
    assert.equal(Buffer.from(objects.secret("ns", "hidden")?.data.get("key") ?? []).toString(), "s3cret");
    assert.doesNotMatch(JSON.stringify(world.journal.entries), /s3cret|czNjcmV0/);
  });
});

function bound(world: World) {
  return { world, objects: world.objects, changed: world.changed, watch: (name: string) => world.watch(name) };
}
