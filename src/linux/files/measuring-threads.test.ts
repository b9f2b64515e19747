import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import type { CalledMount } from "./lane.ts";
import { MeasuringThreads } from "./measuring-threads.ts";

const mount = (name: string): CalledMount => ({ device: `dev-${name}`, target: `/${name}` });
const [a, b, c, d] = [mount("a"), mount("b"), mount("c"), mount("d")];

/** Calls that do not return until the end. */
function scene() {
  const clock = new ManualClock();
  const end = Promise.withResolvers<string>();
  const running: number[] = [];
  const hang = async (): Promise<string> => {
    running.push(running.length);
    return await end.promise;
  };
  return { clock, threads: new MeasuringThreads(clock), end, running, hang };
}

test("calls that hang take at most three threads, and walks two of them", async () => {
  const { threads, end, running, hang } = scene();
  const walks = [a, b, c].map(async (each) => await threads.walk(each, hang));
  await setImmediate();
  assert.equal(running.length, 2);
  assert.equal(await threads.ask(d, async () => "size"), "size", "file systems are asked all the same");
  const asked = [c, d].map(async (each) => await threads.ask(each, hang));
  await setImmediate();
  assert.equal(running.length, 3);
  end.resolve("late");
  assert.deepEqual(await Promise.all([...walks, ...asked]), Array(5).fill("late"));
});

test("a file system is asked by one call at a time, and walked by one", async () => {
  const { threads, end, running, hang } = scene();
  const all = [threads.ask(a, hang), threads.walk(a, hang), threads.ask(a, hang), threads.walk(a, hang)];
  await setImmediate();
  assert.equal(running.length, 2);
  end.resolve("late");
  assert.deepEqual(await Promise.all(all), Array(4).fill("late"));
  assert.equal(running.length, 4);
});

test("a file system that hangs leaves a walk and a thread to the others, whatever asks for it", async () => {
  const { clock, threads, end, running, hang } = scene();
  const first = [threads.walk(a, hang), threads.ask(a, hang)];
  const waiting = [threads.walk(a, hang), threads.ask({ ...a, target: "/elsewhere" }, hang)];
  const refusals = Promise.allSettled(waiting);
  await clock.advance(9_000);
  assert.equal(await threads.walk(b, async () => "walked"), "walked");
  assert.equal(await threads.ask(b, async () => "size"), "size");
  await clock.advance(1_000);
  const why = {
    code: "ETIMEDOUT",
    message: "ETIMEDOUT: the file system at '/a' (dev-a) has not answered for 10 s",
  };
  for (const refusal of await refusals) {
    assert.equal(refusal.status, "rejected");
    assert.throws(() => {
      throw refusal.status === "rejected" ? refusal.reason : undefined;
    }, why);
  }
  await clock.advance(2_000);
  for (const call of [threads.walk(a, hang), threads.ask(a, hang)]) {
    await assert.rejects(call, { ...why, message: /\/a.* 12 s$/u });
  }
  assert.equal(running.length, 2);
  end.resolve("late");
  assert.deepEqual(await Promise.all(first), ["late", "late"]);
  assert.equal(await threads.walk(a, async () => "walked"), "walked", "it answers again");
});

test("while a walk hangs its file system is not asked, and while a question hangs it is not walked", async () => {
  for (const [hangs, other] of [
    ["walk", "ask"],
    ["ask", "walk"],
  ] as const) {
    const { clock, threads, hang } = scene();
    void threads[hangs](a, hang);
    await clock.advance(10_000);
    await assert.rejects(threads[other](a, hang), { code: "ETIMEDOUT" });
  }
});

test("calls that take a while each are waited for in turn", async () => {
  const { clock, threads } = scene();
  const slow = [1, 2, 3].map(
    async (each) => await threads.walk(a, async () => await clock.sleep("a slow disk", 6_000).then(() => each)),
  );
  for (let seconds = 0; seconds < 18; seconds++) await clock.advance(1_000);
  assert.deepEqual(await Promise.all(slow), [1, 2, 3]);
});
