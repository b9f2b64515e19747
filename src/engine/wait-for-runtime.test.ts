import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { CriError, type Cri } from "../ports/cri.ts";
import {
  RuntimeConfigResponseSchema,
  StatusResponseSchema,
  VersionResponseSchema,
} from "../ports/gen/runtime/v1/api_pb.js";
import type { Logger } from "../ports/log.ts";
import { waitForRuntime } from "./wait-for-runtime.ts";

/** A runtime that answers from the given call on; and a log that keeps its messages. */
function setUp(
  answersFrom: number,
  apiVersion = "v1",
): { cri: Cri; log: Logger; messages: string[]; calls: () => number } {
  let calls = 0;
  const messages: string[] = [];
  const runtime = {
    version: async () => {
      if (++calls < answersFrom) throw new CriError("Unavailable", "Version", "connect ENOENT");
      return create(VersionResponseSchema, { runtimeName: "fake", runtimeVersion: "1", runtimeApiVersion: apiVersion });
    },
    status: async () => create(StatusResponseSchema, {}),
    runtimeConfig: async () => create(RuntimeConfigResponseSchema, {}),
  };
  const write = (message: string): void => void messages.push(message);
  const log: Logger = { debug: write, info: write, warn: write, error: write, child: () => log };
  return { cri: { runtime, images: {} } as unknown as Cri, log, messages, calls: () => calls };
}

const { signal } = new AbortController();

test("a runtime that responds is used at once, without a message", async () => {
  const { cri, log, messages } = setUp(1);
  const runtime = await waitForRuntime(cri, new ManualClock(), log, "unix:///x", signal);
  assert.equal(runtime.name, "fake");
  assert.deepEqual(messages, []);
});

test("an unavailable runtime is retried with growing delays, and reported once", async () => {
  const clock = new ManualClock();
  const { cri, log, messages, calls } = setUp(6);
  const waiting = waitForRuntime(cri, clock, log, "unix:///x", signal);
  await clock.advance(200);
  assert.equal(calls(), 1);
  await clock.advance(8000);
  assert.equal((await waiting).name, "fake");
  assert.equal(calls(), 6, "after 0.25, 0.5, 1, 2 and 4 seconds");
  assert.deepEqual(messages, ["container runtime does not answer; waiting for it", "container runtime answers"]);
});

test("a lasting outage is reported every five minutes, and the signal ends the wait", async () => {
  const clock = new ManualClock();
  const { cri, log, messages } = setUp(Number.POSITIVE_INFINITY);
  const controller = new AbortController();
  const waiting = waitForRuntime(cri, clock, log, "unix:///x", controller.signal);
  await clock.advance(11 * 60_000);
  assert.equal(messages.length, 3);
  controller.abort(new Error("told to end"));
  await assert.rejects(waiting, /told to end/);
});

test("a runtime of another kind is not waited for", async () => {
  const { cri, log } = setUp(1, "v1alpha2");
  await assert.rejects(waitForRuntime(cri, new ManualClock(), log, "unix:///x", signal), { exitCode: 3 });
});
