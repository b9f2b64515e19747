import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../test/support/eviction.ts";
import type { Pod, PodSpec } from "../api/pod.ts";
import type { PodUsage } from "./pod-usage.ts";
import { hasStorageLimit, passedLimit } from "./storage-limits.ts";

const mi = 1 << 20;
const limited = (limit: string | undefined, spec: Partial<PodSpec> = {}): Pod => {
  const resources = limit === undefined ? {} : { resources: { limits: { "ephemeral-storage": limit } } };
  return podWith("web", {}, { containers: [{ name: "c", image: "busybox", ...resources }], ...spec });
};
const uses = (amounts: { layer?: number; logs?: number; volume?: number; all?: number }): PodUsage => ({
  containers: [
    {
      name: "c",
      rootfs: { bytes: amounts.layer ?? 0, inodes: 1 },
      logs: { bytes: amounts.logs ?? 0, inodes: 1 },
    },
  ],
  volumes: amounts.volume === undefined ? [] : [{ name: "v", isLocal: true, bytes: amounts.volume, inodes: 1 }],
  ephemeralBytes: amounts.all,
});
const sized = { volumes: [{ name: "v", emptyDir: { sizeLimit: "10Mi" } }] };

test("an emptyDir above its limit is reported first", () => {
  const pod = limited("1Mi", sized);
  const passed = passedLimit(pod, uses({ volume: 10 * mi + 1, all: 20 * mi }), "one");
  assert.deepEqual(passed, {
    signal: "emptydirfs.limit",
    message: 'Usage of EmptyDir volume "v" exceeds the limit "10Mi". ',
    used: 10 * mi + 1,
    limit: 10 * mi,
  });
  assert.equal(passedLimit(limited(undefined, sized), uses({ volume: 10 * mi }), "one"), undefined);
});

test("then the pod as a whole, then its containers", () => {
  const pod = limited("2Mi");
  assert.equal(
    passedLimit(pod, uses({ all: 2 * mi + 1, logs: 3 * mi }), "one")?.message,
    "Pod ephemeral local storage usage exceeds the total limit of containers 2Mi. ",
  );
  assert.deepEqual(passedLimit(pod, uses({ layer: 2 * mi, logs: 1 }), "one"), {
    signal: "ephemeralcontainerfs.limit",
    message: 'Container c exceeded its local ephemeral storage limit "2Mi". ',
    used: 2 * mi + 1,
    limit: 2 * mi,
  });
});

test("writable layers on a file system of their own do not count for container limits", () => {
  const usage = uses({ layer: 5 * mi, logs: 1 });
  assert.equal(passedLimit(limited("2Mi"), usage, "imagefs"), undefined);
  assert.equal(passedLimit(limited("2Mi"), usage, "split"), undefined);
});

test("critical pods are exempt, and pods without limits exceed none", () => {
  const usage = uses({ layer: 5 * mi, volume: 50 * mi, all: 55 * mi });
  assert.equal(passedLimit(limited("2Mi", { ...sized, priority: 2_000_000_000 }), usage, "one"), undefined);
  assert.equal(passedLimit(limited(undefined), usage, "one"), undefined);
  assert.equal(passedLimit(limited("0", sized), uses({}), "one"), undefined);
  const unlimited = limited(undefined, { volumes: [{ name: "v", emptyDir: {} }] });
  assert.deepEqual([unlimited, limited("1Mi"), limited(undefined, sized)].map(hasStorageLimit), [false, true, true]);
});
