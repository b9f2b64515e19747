import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import type { Cri } from "../ports/cri.ts";
import { SandboxImages } from "./sandbox-images.ts";

const { signal } = new AbortController();
const pause = JSON.stringify({ pid: 7, image: "registry.k8s.io/pause:3.10" });

function imagesBy(answer: (id: string) => Promise<Record<string, string>>): {
  readonly clock: ManualClock;
  readonly images: SandboxImages;
  readonly asked: string[];
} {
  const [clock, asked] = [new ManualClock(), [] as string[]];
  const podSandboxStatus = async ({ podSandboxId = "", verbose = false }): Promise<object> => {
    assert.equal(verbose, true);
    asked.push(podSandboxId);
    return { info: await answer(podSandboxId) };
  };
  const runtime = { podSandboxStatus } as unknown as Cri["runtime"];
  return { clock, asked, images: new SandboxImages({ clock, runtime }, signal) };
}

test("the runtime is asked once for the image of each sandbox, and again for one that it did not find", async () => {
  let isThere = false;
  const { images, asked } = imagesBy(async (id) => {
    if (id === "late" && !isThere) throw new Error("not found");
    return id === "silent" ? {} : { info: pause };
  });
  const first = await images.of(["late", "a", "silent"]);
  assert.deepEqual(Object.fromEntries(first), { a: "registry.k8s.io/pause:3.10", silent: "" });
  isThere = true;
  const second = await images.of(["late", "a", "silent"]);
  assert.equal(second.get("late"), "registry.k8s.io/pause:3.10");
  assert.deepEqual(asked, ["late", "a", "silent", "late"]);
  assert.deepEqual([...(await images.of(["a"])).keys()], ["a"]);
});

test("a runtime that does not answer delays metrics by a second, and what cannot be understood is no image", async () => {
  const { clock, images } = imagesBy(async (id) => {
    return id === "hangs" ? await new Promise<never>(() => {}) : { info: "not JSON" };
  });
  const answer = images.of(["odd", "hangs"]);
  await clock.advance(1_000);
  assert.deepEqual(Object.fromEntries(await answer), { odd: "" });
});
